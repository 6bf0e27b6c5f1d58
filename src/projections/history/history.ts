/**
 * The configuration of a node at an earlier generation. A worker thread (`worker.ts`), one at a time, folds the log up to it;
 * the main thread reads the log no further than needed and as fast as the thread folds. Secrets stay sealed; `src/delivery/`
 * opens them for the answer. Implements `docs/contract/rest.md#nodes`.
 */
import { on } from 'node:events';
import type { Worker } from 'node:worker_threads';
import { isPast } from '../../domain/compile/earlier.js';
import { chainBreakText, type ChainBreak } from '../../domain/log-chain/links.js';
import type { NodeSnapshot } from '../../domain/snapshot/snapshot.js';
import { unlessAborted, withFirstOf } from '../../kernel/background.js';
import { ServiceError, unreachable } from '../../kernel/errors.js';
import { streams } from '../../kernel/event.js';
import type { Logger } from '../../kernel/logger.js';
import { createSemaphore } from '../../kernel/semaphore.js';
import { ThreadLostError, threadBeside, withThread } from '../../kernel/worker-thread.js';
import type { LogChain, LogChainKey } from '../../security/log-chain/log-chain.js';
import { ownEvent } from '../../storage/broken-log.js';
import type { EventStore } from '../../storage/event-store.js';
import { loadCheckpoint, type StoredFleet } from '../fleet/fold-checkpoint.js';

/** The data that a thread starts with. */
export interface Question {
  readonly nodeId: string;
  readonly generation: number;
  readonly chainKey: LogChainKey;
  /** A checkpoint saves reading the events before it, if the thread can verify it. */
  readonly checkpoint: StoredFleet | undefined;
}

/** The thread's next message: a list of events as JSON, in order; undefined after the last one. */
export type Part = string | undefined;

/** The thread's messages: `ready` once, then `more` for each part until it has the answer. */
export type Message =
  /** It needs the events after this revision of `svc-fleet`; -1 for all. */
  | { readonly kind: 'ready'; readonly revision: number }
  | { readonly kind: 'more' }
  /** With secrets sealed; undefined when the node had no generation that early. */
  | { readonly kind: 'compiled'; readonly snapshot: NodeSnapshot | undefined }
  /** The log was tampered with. */
  | { readonly kind: 'broken'; readonly at: ChainBreak };

type Answer = Extract<Message, { readonly kind: 'compiled' | 'broken' }>;

export interface History {
  /**
   * The snapshot of a node at its newest generation that is not above the wanted one, with secrets sealed; undefined when the
   * node had none.
   * @throws ServiceError `unavailable` when too many questions wait, the fold takes too long, the service stops, the store is
   *   out of reach or the log is broken; ThreadLostError
   */
  compileEarlier(nodeId: string, generation: number): Promise<NodeSnapshot | undefined>;
  /** Fails all questions and ends the thread. */
  close(): Promise<void>;
}

export interface HistoryOptions {
  readonly eventStore: EventStore;
  readonly logChain: Pick<LogChain, 'key' | 'found'>;
  readonly logger: Logger;
  /** The program of the threads. */
  readonly entry?: URL;
  /** How many requests may wait. */
  readonly waiting?: number;
  /** How long a request may wait. */
  readonly waitMs?: number;
  /** How long one fold may take: enough for a million events on a busy machine. */
  readonly answerMs?: number;
}

/** A thread that exceeds this heap ends without ending the process. */
const resourceLimits = { maxOldGenerationSizeMb: 2048, stackSizeMb: 4 };
const partChars = 128 * 1024;

export function createHistory(options: HistoryOptions): History {
  const { eventStore, logChain, logger, waiting = 16, waitMs = 30_000, answerMs = 180_000 } = options;
  const entry = options.entry ?? threadBeside(import.meta.url, 'worker');
  // One thread at a time: the main thread needs the other core, and folding a large fleet takes memory.
  const turns = createSemaphore({ places: 1, waiting, waitMs });
  const closing = new AbortController();
  let running: Promise<unknown> = Promise.resolve();

  const stopping = (): ServiceError => new ServiceError('unavailable', 'the service is stopping');
  const retryLater = (message: string): ServiceError =>
    new ServiceError('unavailable', message, { hints: { retryAfterSeconds: 5 } });

  const ask = async (nodeId: string, generation: number): Promise<Answer> => {
    const late = AbortSignal.timeout(answerMs);
    try {
      return await withFirstOf([closing.signal, late], async (signal) => {
        // The store may never answer.
        const loading = loadCheckpoint(eventStore, (revision) => !isPast(revision, generation));
        const checkpoint = own(await unlessAborted(loading, signal));
        const workerData: Question = { nodeId, generation, chainKey: logChain.key, checkpoint };
        return withThread(entry, { workerData, resourceLimits, signal }, (worker, ends) =>
          converse(eventStore, worker, generation, ends),
        );
      });
    } catch (error) {
      if (closing.signal.aborted) throw stopping();
      if (late.aborted) throw retryLater(`this took longer than ${answerMs / 1000} s`);
      if (error instanceof ThreadLostError)
        logger.error({ error: error.message }, 'an earlier configuration could not be compiled');
      throw error;
    }
  };

  const compileEarlier = async (nodeId: string, generation: number): Promise<NodeSnapshot | undefined> => {
    // The first revision is 0.
    if (isPast(0, generation)) return undefined;
    const leave = await turns.enter();
    if (leave === undefined) throw closing.signal.aborted ? stopping() : retryLater('too many such requests at a time');
    const asked = ask(nodeId, generation).finally(leave);
    running = asked.catch(() => undefined);
    const answer = await asked;
    switch (answer.kind) {
      case 'compiled':
        return answer.snapshot;
      case 'broken':
        logChain.found(answer.at);
        throw new ServiceError('unavailable', chainBreakText(answer.at));
      default:
        return unreachable(answer);
    }
  };

  return {
    compileEarlier,
    async close() {
      closing.abort();
      turns.close();
      await running;
    },
  };
}

/** Sends the events up to the generation, in parts as the thread asks for them, until it answers. */
async function converse(
  eventStore: EventStore,
  worker: Worker,
  generation: number,
  signal: AbortSignal,
): Promise<Answer> {
  let parts: AsyncGenerator<string> | undefined;
  try {
    for await (const [message] of on(worker, 'message', { signal }) as AsyncIterable<[Message]>) {
      if (message.kind === 'compiled' || message.kind === 'broken') return message;
      if (message.kind === 'ready') parts = readParts(eventStore, message.revision + 1, generation);
      const next = await parts?.next();
      worker.postMessage(next?.done === false ? next.value : undefined);
    }
  } finally {
    // Not awaited: a read that hangs would hold up a failure.
    void parts?.return(undefined).catch(() => undefined);
  }
  throw new Error('the messages of a worker thread ended');
}

/** The events of `svc-fleet` from a revision to `generation` - 1; later ones do not belong to the generation. */
async function* readParts(eventStore: EventStore, from: number, generation: number): AsyncGenerator<string> {
  const maxCount = generation - from;
  if (maxCount < 1) return;
  let part: string[] = [];
  let chars = 0;
  for await (const event of eventStore.read(streams.fleet, { direction: 'forward', from, maxCount })) {
    const text = JSON.stringify(ownEvent(event));
    part.push(text);
    chars += text.length;
    if (chars < partChars) continue;
    yield `[${part.join()}]`;
    [part, chars] = [[], 0];
  }
  if (part.length > 0) yield `[${part.join()}]`;
}

/** The checkpoint in its own memory, because a message copies the whole buffer behind its bytes. */
function own(checkpoint: StoredFleet | undefined): StoredFleet | undefined {
  if (checkpoint === undefined) return undefined;
  const { stored, last } = checkpoint;
  return { stored: { ...stored, bytes: new Uint8Array(stored.bytes) }, last };
}

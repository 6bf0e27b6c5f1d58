/**
 * Looks into the past: the configuration of a node at an earlier generation, folded again from the log in a worker thread
 * (`compile-earlier.ts`). The main thread only reads the log, as much as is needed and as fast as the worker takes it, so it
 * works on every event store. Not how the answer is shown, nor the secrets in it: those are in `src/delivery/`.
 * Implements `docs/contract/rest.md#nodes`.
 */
import { isPast } from '../domain/compile/earlier.js';
import { chainBreakText } from '../domain/log-chain/links.js';
import type { NodeSnapshot } from '../domain/snapshot/snapshot.js';
import { loadCheckpoint } from '../projections/fleet/fold-checkpoint.js';
import { yieldToEventLoop } from '../kernel/background.js';
import { ServiceError, unreachable } from '../kernel/errors.js';
import { streams } from '../kernel/event.js';
import { limits } from '../kernel/limits.js';
import type { LogChain } from '../security/log-chain/log-chain.js';
import type { EventStore } from '../storage/event-store.js';
import type { Conversation } from '../workers/conversation.js';
import type { WorkerPool } from '../workers/pool.js';
import { jobName } from './messages.js';
import type { FromJob, ToJob, Wanted } from './messages.js';
import { tuning } from './tuning.js';

export interface HistoryDeps {
  readonly eventStore: EventStore;
  readonly logChain: Pick<LogChain, 'macKeys' | 'found'>;
  readonly workers: Pick<WorkerPool, 'run'>;
  /** Instead of that of `tuning.ts`. */
  readonly checkpointWorthEvents?: number;
}

/**
 * The snapshot of a node at the newest generation that is not above the wanted one, with secrets sealed; undefined when the
 * node had none.
 * @param head revision of `svc-fleet` that this instance has folded
 * @throws ServiceError `unavailable` for a full queue, a fold that takes too long, a store out of reach and a broken log
 */
export type CompileEarlier = (nodeId: string, generation: number, head: number) => Promise<NodeSnapshot | undefined>;

export function createHistory({ eventStore, logChain, workers, ...options }: HistoryDeps): CompileEarlier {
  const { checkpointWorthEvents } = { ...tuning, ...options };
  /** The newest checkpoint is seldom further behind the head than this, and a fold before it cannot use it. */
  const mayHaveCheckpoint = (from: number, generation: number, head: number): boolean =>
    generation - from > checkpointWorthEvents && head - generation < 2 * limits.events.foldCheckpointEvery;
  return async (nodeId, generation, head) => {
    // The first revision is 0.
    if (isPast(0, generation)) return undefined;
    const result = await workers.run(jobName, async (conversation) => {
      const job = talkOf(conversation);
      conversation.send({ nodeId, generation, macKeys: logChain.macKeys() } satisfies Wanted);
      let from = await job.from();
      if (mayHaveCheckpoint(from, generation, head)) {
        const isWanted = (revision: number): boolean => revision > from && !isPast(revision, generation);
        const checkpoint = await loadCheckpoint(eventStore, isWanted);
        if (checkpoint !== undefined) {
          const { stored, last } = checkpoint;
          // The memory goes to the worker; it must be the checkpoint's alone.
          const { buffer, byteLength } = stored.bytes;
          const isAlone = buffer instanceof ArrayBuffer && buffer.byteLength === byteLength;
          const bytes = isAlone ? new Uint8Array(buffer) : new Uint8Array(stored.bytes);
          conversation.send(
            { kind: 'checkpoint', checkpoint: { stored: { ...stored, bytes }, last } } satisfies ToJob,
            [bytes.buffer],
          );
          from = await job.from();
        }
      }
      return send(eventStore, conversation, from, generation);
    });
    switch (result.kind) {
      case 'compiled':
        return result.snapshot;
      case 'broken':
        logChain.found(result.at);
        throw new ServiceError('unavailable', chainBreakText(result.at));
      default:
        return unreachable(result);
    }
  };
}

type Result = Extract<FromJob, { readonly kind: 'compiled' | 'broken' }>;

/** Sends the events that can be part of the generation, at most a few parts ahead of the worker. */
async function send(
  eventStore: EventStore,
  conversation: Conversation,
  from: number,
  generation: number,
): Promise<Result> {
  const job = talkOf(conversation);
  let onTheWay = 0;
  let part: string[] = [];
  let chars = 0;
  /** @returns the result when the fold needs no more */
  const flush = async (): Promise<Result | undefined> => {
    if (part.length === 0) return undefined;
    conversation.send({ kind: 'events', text: `[${part.join()}]` } satisfies ToJob);
    onTheWay += 1;
    [part, chars] = [[], 0];
    // A store may hand out many events at once.
    await yieldToEventLoop();
    if (onTheWay < tuning.partsOnTheWay) return undefined;
    onTheWay -= 1;
    return job.takenOrResult();
  };
  // Revisions from `from` + 1 to `generation` - 1: a later one is past the generation.
  const maxCount = generation - 1 - from;
  const events = maxCount < 1 ? [] : eventStore.read(streams.fleet, { direction: 'forward', from: from + 1, maxCount });
  for await (const event of events) {
    const text = JSON.stringify(event);
    part.push(text);
    chars += text.length;
    if (chars < tuning.partChars) continue;
    const result = await flush();
    if (result !== undefined) return result;
  }
  const result = await flush();
  if (result !== undefined) return result;
  conversation.send({ kind: 'end' } satisfies ToJob);
  for (;;) {
    const last = await job.takenOrResult();
    if (last !== undefined) return last;
  }
}

/** What the job says, as far as it can be said at this point. */
function talkOf(conversation: Conversation): {
  from(): Promise<number>;
  /** Undefined for `taken`. */
  takenOrResult(): Promise<Result | undefined>;
} {
  const next = async (): Promise<FromJob> => (await conversation.receive()) as FromJob;
  const unexpected = (kind: string): Error => new Error(`a worker said ${kind} out of turn`);
  return {
    async from() {
      const said = await next();
      if (said.kind !== 'from') throw unexpected(said.kind);
      return said.revision;
    },
    async takenOrResult() {
      const said = await next();
      if (said.kind === 'from') throw unexpected(said.kind);
      return said.kind === 'taken' ? undefined : said;
    },
  };
}

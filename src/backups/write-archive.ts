/**
 * Writes an archive of the log beside the running service and verifies it, in a thread (`archive-thread.ts`): the main thread
 * only reads the log, a little at a time and as fast as the thread writes. So no request waits for a backup. Implements
 * `docs/contract/joining.md#backups`.
 */
import { randomUUID } from 'node:crypto';
import { on } from 'node:events';
import { unreachable } from '../kernel/errors.js';
import { chainedStreams } from '../kernel/event.js';
import { threadBeside, withThread } from '../kernel/worker-thread.js';
import type { LogChainKey } from '../security/log-chain/log-chain.js';
import type { EventStore } from '../storage/event-store.js';
import { readWholeLog } from '../storage/follow.js';
import { archiveScope } from './archive-scope.js';
import type { Failure } from './failure.js';
import { tuning } from './tuning.js';

/** The data that the thread starts with. */
export interface Order {
  readonly path: string;
  readonly installationId: string;
  readonly archiveId: string;
  /** RFC 3339. */
  readonly exportedAt: string;
  /** Proves the archive; opens no secret. */
  readonly chainKey: LogChainKey;
}

/** The thread's next message: the events of whole commands as JSON, in log order; undefined after the last one. */
export type Part = string | undefined;

export type Message =
  /** It waits for the next part. */
  { readonly kind: 'more' } | ({ readonly kind: 'written' } & WrittenArchive) | ({ readonly kind: 'failed' } & Failure);

export interface WrittenArchive {
  readonly bytes: number;
  readonly events: number;
}

export interface ArchiveWriter {
  readonly eventStore: Pick<EventStore, 'subscribe'>;
  readonly installationId: string;
  readonly chainKey: LogChainKey;
  /** The program of the thread. */
  readonly entry?: URL | undefined;
}

/**
 * Writes the log up to its end at the time of the call. The file is complete, verified, proven and flushed when this resolves.
 * @param path of a file that does not exist @param exportedAt RFC 3339
 * @throws Error with the thread's reason, ThreadLostError, BrokenLogError, ServiceError `unavailable`, or the signal's reason
 */
export async function writeArchive(
  { eventStore, installationId, chainKey, entry = threadBeside(import.meta.url, 'archive-thread') }: ArchiveWriter,
  path: string,
  exportedAt: string,
  signal: AbortSignal,
): Promise<WrittenArchive> {
  const workerData: Order = { path, installationId, archiveId: randomUUID(), exportedAt, chainKey };
  const { streams } = archiveScope;
  const passesOver = (stream: string): boolean => !chainedStreams.includes(stream);
  return withThread(entry, { workerData, resourceLimits: tuning.threadLimits, signal }, async (worker, ends) => {
    const parts = readWholeLog(eventStore, { streams, after: 'start', ahead: tuning.ahead, passesOver, signal: ends });
    try {
      for await (const [message] of on(worker, 'message', { signal: ends }) as AsyncIterable<[Message]>) {
        switch (message.kind) {
          case 'more': {
            const next = await parts.next();
            // A read that was ended is not the end of the log.
            ends.throwIfAborted();
            const part = next.done === true ? undefined : next.value.flatMap(({ events }) => events);
            worker.postMessage(part && JSON.stringify(part));
            break;
          }
          case 'written':
            return message;
          case 'failed':
            throw new Error(message.reason, { cause: message.error });
          default:
            unreachable(message);
        }
      }
      throw new Error('the messages of a worker thread ended');
    } finally {
      // Not awaited: a read that hangs would hold up a failure.
      void parts.return().catch(() => undefined);
    }
  });
}

/**
 * Reports a log that is no longer the one that was followed: emptied, restored from an older backup, or another
 * installation's. Logs this when it starts, once a minute meanwhile, and when it ends, however many subscriptions are
 * affected. `subscription.ts` refuses to continue.
 */
import { FORWARDS } from '@eventstore/db-client';
import type { Clock } from '../../kernel/clock.js';
import { ServiceError } from '../../kernel/errors.js';
import type { StoredEvent } from '../../kernel/event.js';
import type { Logger } from '../../kernel/logger.js';
import type { Connection } from './connection.js';
import { readStreamPage } from './read.js';

const tellEveryMs = 60_000;

export interface ReplacedLog {
  /** Notes events that a subscription has delivered. */
  delivered(events: readonly StoredEvent[]): void;
  /**
   * A subscription cannot continue after a position.
   * @param head position of the log's newest event
   * @returns the error for its consumer
   */
  refused(after: number, head: number): Promise<ServiceError>;
  /** A subscription continues after a position. */
  goesOn(after: number): void;
}

export function createReplacedLog(
  connection: Connection,
  logger: Logger,
  clock: Pick<Clock, 'monotonic'>,
): ReplacedLog {
  let newest: Pick<StoredEvent, 'stream' | 'revision' | 'id' | 'position'> | undefined;
  let told: { at: number; readonly after: number } | undefined;

  /** What the log holds where the newest delivered event was; undefined when that says nothing. */
  async function inItsPlace(): Promise<string | undefined> {
    if (newest === undefined) return undefined;
    const { stream, revision, id } = newest;
    const there = { direction: FORWARDS, fromRevision: BigInt(revision), maxCount: 1 } as const;
    const [found] = await readStreamPage(connection, stream, there);
    if (found?.event?.revision !== BigInt(revision) || found.event.id === id) return undefined;
    return `it belongs to another installation, or was rewritten: ${stream}@${revision} was event ${id} and is ${found.event.id}`;
  }

  return {
    delivered(events) {
      const last = events.at(-1);
      if (last === undefined || last.position <= (newest?.position ?? -1)) return;
      const { stream, revision, id, position } = last;
      newest = { stream, revision, id, position };
    },
    async refused(after, head) {
      const shorter = `it is shorter than it was, emptied or restored from an older backup: it ends at ${head}, before the stored position ${after}`;
      const elsewhere = `the stored position ${after} is not in it`;
      const what = (await inItsPlace().catch(() => undefined)) ?? (after > head ? shorter : elsewhere);
      const now = clock.monotonic();
      if (told === undefined || now - told.at >= tellEveryMs) {
        logger.error({ after, head }, `the log is not the one that was followed: ${what}; see docs/how-to/restore.md`);
        told = { at: now, after: Math.max(after, told?.after ?? 0) };
      }
      return new ServiceError('unavailable', `The log is not the one that was followed: ${what}.`);
    },
    goesOn(after) {
      if (told === undefined || after < told.after) return;
      told = undefined;
      logger.info({ after }, 'the log is again the one that was followed');
    },
  };
}

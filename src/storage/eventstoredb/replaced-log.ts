/**
 * Reports a log that no longer holds the position that was followed: emptied, restored from an older backup, or another
 * installation's. Logs this when it starts, once a minute meanwhile, and when it ends, however many subscriptions are
 * affected. `subscription.ts` refuses to continue.
 */
import type { Clock } from '../../kernel/clock.js';
import { ServiceError } from '../../kernel/errors.js';
import type { Logger } from '../../kernel/logger.js';

const tellEveryMs = 60_000;

export interface ReplacedLog {
  /**
   * A subscription cannot continue after a position.
   * @param head position of the log's newest event
   * @returns the error for its consumer
   */
  refused(after: number, head: number): ServiceError;
  /** A subscription continues after a position. */
  goesOn(after: number): void;
}

export function createReplacedLog(logger: Logger, clock: Pick<Clock, 'monotonic'>): ReplacedLog {
  let told: { at: number; readonly after: number } | undefined;
  return {
    refused(after, head) {
      const what =
        after > head
          ? `it is shorter than it was, emptied or restored from an older backup: it ends at ${head}, before the stored position ${after}`
          : `the stored position ${after} is not in it`;
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

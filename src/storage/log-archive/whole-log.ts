/**
 * Reads the log as whole commands from a point to its end at the time of the call, for an export or a check. Unlike
 * `follow.ts`, it ends, and it gives up on a store that stays away.
 */
import { ServiceError } from '../../kernel/errors.js';
import type { RecordedCommand } from '../../kernel/event.js';
import type { EventStore, ResumePoint } from '../event-store.js';
import { followLog } from '../follow.js';
import { tuning } from './tuning.js';

export interface WholeLogOptions {
  /** Prefix of the names of the streams. */
  readonly prefix: string;
  readonly after: ResumePoint | 'start';
  readonly signal: AbortSignal;
}

/**
 * Yields batches of commands until the end of the log. Ends early, without an error, when the signal aborts.
 * @throws BrokenLogError, ServiceError `unavailable` when the store stays away
 */
export async function* readWholeLog(
  store: EventStore,
  { prefix, after, signal }: WholeLogOptions,
): AsyncGenerator<readonly RecordedCommand[], void, void> {
  const enough = new AbortController();
  const either = AbortSignal.any([signal, enough.signal]);
  let heard = performance.now();
  try {
    for await (const item of followLog(store, { prefix, after, signal: either })) {
      if (item.kind === 'caught_up') return;
      if (item.kind === 'commands') yield item.commands;
      if (item.kind !== 'dropped') heard = performance.now();
      else if (performance.now() - heard > tuning.giveUpMs) {
        throw new ServiceError('unavailable', 'the event store stays away', { cause: item.cause });
      }
    }
  } finally {
    enough.abort();
  }
}

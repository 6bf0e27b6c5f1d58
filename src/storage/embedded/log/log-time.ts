/**
 * The time that `$maxAge` uses. Expired events are deleted for good, and a clock that runs a year ahead for an hour must
 * not delete every fact. So this time follows the wall clock, but runs at most twice as fast as the time the process has
 * measured, restarts included, and is never later than the newest event. Events are recorded with the wall clock.
 * Implements `docs/contract/domain.md#one-consistency-boundary-the-fleet` (`$maxAge`).
 */
import type { Clock } from '../../../kernel/clock.js';
import { tuning } from '../tuning.js';
import { recordedAtOf } from './event-codec.js';
import { decodeAppend, eventKey, metaKeys, positionKey, readCounters, type LogBatch, type LogReads } from './layout.js';

export interface LogTime {
  /** Milliseconds since the epoch. May move back with the wall clock. */
  now(): number;
  /** An append was recorded at this wall-clock time. */
  recorded(at: number): void;
  /** Stores the time for the next start. */
  save(batch: LogBatch): void;
}

export function createLogTime(environment: LogReads, clock: Clock): LogTime {
  const saved = environment.get('meta', metaKeys.time);
  let newest = newestRecordedAt(environment);
  let measuredAt = clock.monotonic();
  let time = saved === undefined ? (newest ?? clock.now()) : Number(saved.toString('utf8'));

  /** The wall clock, as far as it can be trusted. */
  function trusted(): number {
    const before = measuredAt;
    measuredAt = clock.monotonic();
    time = Math.min(clock.now(), time + tuning.logTimeSpeed * (measuredAt - before));
    return time;
  }

  return {
    now: () => Math.min(trusted(), newest ?? Number.POSITIVE_INFINITY),
    recorded(at) {
      trusted();
      newest = at;
    },
    save: (batch) => batch.put('meta', metaKeys.time, Buffer.from(`${Math.floor(trusted())}`)),
  };
}

/**
 * When the newest event of the log was recorded, in milliseconds since the epoch; undefined for an empty log. This
 * event is never trimmed (`trim.ts`).
 */
export function newestRecordedAt(environment: LogReads): number | undefined {
  const { position } = readCounters(environment.get);
  const range = { from: positionKey(0), to: positionKey(position + 1), reverse: true, limit: 1 };
  const [entry] = environment.entries('appends', range);
  if (entry === undefined) return undefined;
  const { stream, revision, count } = decodeAppend(entry.key, entry.value);
  const last = environment.get('events', eventKey(stream, revision + count - 1));
  return last === undefined ? undefined : recordedAtOf(last.toString('utf8'));
}

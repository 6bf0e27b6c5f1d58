/** When the newest event of the log was recorded. It is never trimmed (`trim.ts`). */
import { recordedAtOf } from './event-codec.js';
import { decodeAppend, eventKey, positionKey, readCounters, type LogEnvironment } from './layout.js';

/** Milliseconds since the epoch; undefined for an empty log. */
export function newestRecordedAt(environment: LogEnvironment): number | undefined {
  const { position } = readCounters(environment.get);
  const range = { from: positionKey(0), to: positionKey(position + 1), reverse: true, limit: 1 };
  const [entry] = environment.entries('appends', range);
  if (entry === undefined) return undefined;
  const { stream, revision, count } = decodeAppend(entry.key, entry.value);
  const last = environment.get('events', eventKey(stream, revision + count - 1));
  return last === undefined ? undefined : recordedAtOf(last.toString('utf8'));
}

/**
 * Removes expired events, to bound disk space. Removes whole appends, so that a subscription never sees half of one,
 * but never a stream's last append. `reading.ts` hides expired events at once. Implements
 * `docs/contract/domain.md#one-consistency-boundary-the-fleet` (`$maxAge`).
 */
import { decodeHead, recordedAtOf } from './event-codec.js';
import {
  decodeAppend,
  eventKey,
  positionKey,
  readStreamRecord,
  type AppendRecord,
  type LogBatch,
  type LogEnvironment,
} from './layout.js';
import { tuning } from '../tuning.js';

/** Appends removed in one group commit; few, because live appends wait for it. */
const appendsPerCommit = 50;

function appendHolding(environment: LogEnvironment, position: number): AppendRecord | undefined {
  const [entry] = environment.entries('appends', {
    from: positionKey(0),
    to: positionKey(position + 1),
    reverse: true,
    limit: 1,
  });
  return entry === undefined ? undefined : decodeAppend(entry.key, entry.value);
}

/** Removes the oldest expired appends of a stream. @returns how many; fewer than `appendsPerCommit` if none are left */
function trimOnce(environment: LogEnvironment, batch: LogBatch, stream: string, now: number): number {
  const record = readStreamRecord(batch.get, stream);
  if (record === undefined) return 0;
  const { maxCount, maxAgeSeconds } = record.retention;
  if (maxCount === undefined && maxAgeSeconds === undefined) return 0;
  let revision = 0;
  let removed = 0;
  while (removed < appendsPerCommit) {
    const [oldest] = environment.texts('events', {
      from: eventKey(record.number, revision),
      to: eventKey(record.number, record.head + 1),
      limit: 1,
      maxBytes: 1,
    });
    if (oldest === undefined) return removed;
    const append = appendHolding(environment, decodeHead(oldest.text).position);
    if (append === undefined || append.stream !== record.number) return removed;
    const lastRevision = append.revision + append.count - 1;
    const last = batch.get('events', eventKey(record.number, lastRevision));
    if (lastRevision >= record.head || last === undefined) return removed;
    const overCount = maxCount !== undefined && lastRevision <= record.head - maxCount;
    const overAge = maxAgeSeconds !== undefined && recordedAtOf(last.toString('utf8')) < now - maxAgeSeconds * 1000;
    if (!overCount && !overAge) return removed;
    for (let index = 0; index < append.count; index += 1) {
      batch.remove('events', eventKey(record.number, append.revision + index));
    }
    batch.remove('appends', positionKey(append.position));
    revision = lastRevision + 1;
    removed += 1;
  }
  return removed;
}

/** Trims every stream by a bounded number of appends. @returns how many appends were removed */
export async function trimStreams(
  environment: LogEnvironment,
  run: (operation: (batch: LogBatch) => number) => Promise<number>,
  now: () => number,
  signal: AbortSignal,
): Promise<number> {
  let total = 0;
  let from = Buffer.from([1]);
  for (;;) {
    const names = environment.keys('streams', { from, to: Buffer.alloc(8, 0xff), limit: 100 });
    for (const name of names) {
      const stream = name.toString('utf8');
      let trimmed = 0;
      while (trimmed < tuning.trimAppends && !signal.aborted) {
        const removed = await run((batch) => trimOnce(environment, batch, stream, now()));
        trimmed += removed;
        if (removed < appendsPerCommit) break;
      }
      total += trimmed;
    }
    const last = names.at(-1);
    if (last === undefined || signal.aborted) return total;
    from = Buffer.concat([last, Buffer.from([0])]);
  }
}

/**
 * Counts the documents of a collection and of each group of a grouped index, in the transaction that writes the
 * documents, so that the total of a list needs no scan. Other filters are counted by `query-run.ts`. Implements
 * `read-store.ts` (Page.total, IndexSpec.grouped).
 *
 * Keys of `counts`: the prefix of an index and the bytes of all its fields but the last. Index 0 is the whole
 * collection.
 */
import { indexPrefix } from './index-keys.js';
import type { ReadBatch, ReadEnvironment } from './layout.js';

/** The changes of one operation: key as latin-1 text → difference. */
export type Tally = Map<string, number>;

export function addTo(tally: Tally, key: string, difference: number): void {
  tally.set(key, (tally.get(key) ?? 0) + difference);
}

/** Key of the total of a collection, as latin-1 text. */
export const totalKey = (collection: number): string => indexPrefix(collection, 0).toString('latin1');

function encodeCount(count: number): Buffer {
  const value = Buffer.allocUnsafe(8);
  value.writeDoubleBE(count, 0);
  return value;
}

const decodeCount = (value: Buffer | undefined): number => value?.readDoubleBE(0) ?? 0;

/** Writes the differences. Call it once per operation, after the documents. */
export function applyTally(batch: ReadBatch, tally: Tally): void {
  for (const [key, difference] of tally) {
    if (difference === 0) continue;
    const next = decodeCount(batch.get('counts', key)) + difference;
    if (next === 0) batch.remove('counts', key);
    else batch.put('counts', key, encodeCount(next));
  }
}

/** @param key of a group or of a collection, as described above */
export function readCount(environment: ReadEnvironment, key: Buffer): number {
  return decodeCount(environment.get('counts', key));
}

export function readTotal(environment: ReadEnvironment, collection: number): number {
  return readCount(environment, Buffer.from(totalKey(collection), 'latin1'));
}

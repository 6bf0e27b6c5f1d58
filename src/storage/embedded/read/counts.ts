/**
 * How many documents a collection has, and each group of a grouped index: kept in the transaction that writes the
 * documents, so that the total of a list needs no walk. Not the count of any other filter. Implements `read-store.ts`
 * (Page.total, IndexSpec.grouped).
 *
 * Keys of `counts`: the prefix of an index and the bytes of all its fields but the last; index 0 is the collection.
 */
import { indexPrefix } from './index-keys.js';
import type { ReadBatch, ReadEnvironment } from './layout.js';

/** What one operation changes: key as latin-1 text → difference. */
export type Tally = Map<string, number>;

export function addTo(tally: Tally, key: string, difference: number): void {
  tally.set(key, (tally.get(key) ?? 0) + difference);
}

/** Key of the number of documents of a collection, as latin-1 text. */
export const totalKey = (collection: number): string => indexPrefix(collection, 0).toString('latin1');

function encodeCount(count: number): Buffer {
  const value = Buffer.allocUnsafe(8);
  value.writeDoubleBE(count, 0);
  return value;
}

const decodeCount = (value: Buffer | undefined): number => value?.readDoubleBE(0) ?? 0;

/** Writes the differences; once per operation, after its documents. */
export function applyTally(batch: ReadBatch, tally: Tally): void {
  for (const [key, difference] of tally) {
    if (difference === 0) continue;
    const next = decodeCount(batch.get('counts', Buffer.from(key, 'latin1'))) + difference;
    if (next === 0) batch.remove('counts', key);
    else batch.put('counts', key, encodeCount(next));
  }
}

export function setTotal(batch: ReadBatch, collection: number, count: number): void {
  batch.put('counts', totalKey(collection), encodeCount(count));
}

/** @param key bytes of a group or of a collection, see above */
export function readCount(environment: ReadEnvironment, key: Buffer): number {
  return decodeCount(environment.get('counts', key));
}

export function readTotal(environment: ReadEnvironment, collection: number): number {
  return readCount(environment, Buffer.from(totalKey(collection), 'latin1'));
}

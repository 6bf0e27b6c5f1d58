/** Creates the missing indexes of a collection, and with them the collection. `query.ts` says which indexes. */
import type { Collection } from 'mongodb';
import { isMissing } from './failures.js';
import { reading } from './tuning.js';

export type IndexKey = ReadonlyMap<string, 1 | -1>;

const nameOf = (key: IndexKey): string => [...key].flat().join('_');

async function existing<T extends object>(collection: Collection<T>): Promise<ReadonlySet<string>> {
  try {
    return new Set((await collection.indexes(reading)).map(({ name }) => name ?? ''));
  } catch (error) {
    if (isMissing(error)) return new Set();
    throw error;
  }
}

/** Idempotent, even for several instances at once. */
export async function ensureIndexes<T extends object>(
  collection: Collection<T>,
  keys: readonly IndexKey[],
): Promise<void> {
  const missing = async () => {
    const names = await existing(collection);
    return keys.map((key) => ({ key: new Map(key), name: nameOf(key) })).filter(({ name }) => !names.has(name));
  };
  // FerretDB drops the connection if there is nothing to create, so list first.
  const wanted = await missing();
  if (wanted.length === 0) return;
  try {
    await collection.createIndexes(wanted);
  } catch (error) {
    // Another instance may have created them meanwhile.
    if ((await missing()).length > 0) throw error;
  }
}

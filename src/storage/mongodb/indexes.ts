/** Makes the indexes of a collection that are not there yet, and with them the collection. Which ones: query.ts. */
import type { Collection } from 'mongodb';
import { isMissing } from './failures.js';

export type IndexKey = ReadonlyMap<string, 1 | -1>;

const nameOf = (key: IndexKey): string => [...key].flat().join('_');

async function existing<T extends object>(collection: Collection<T>): Promise<ReadonlySet<string>> {
  try {
    return new Set((await collection.indexes()).map(({ name }) => name ?? ''));
  } catch (error) {
    if (isMissing(error)) return new Set();
    throw error;
  }
}

/** Idempotent, also for several instances at once. */
export async function ensureIndexes<T extends object>(
  collection: Collection<T>,
  keys: readonly IndexKey[],
): Promise<void> {
  const missing = async () => {
    const names = await existing(collection);
    return keys.map((key) => ({ key: new Map(key), name: nameOf(key) })).filter(({ name }) => !names.has(name));
  };
  // Asked for first: FerretDB ends the connection when nothing of what it is to make is missing.
  const wanted = await missing();
  if (wanted.length === 0) return;
  try {
    await collection.createIndexes(wanted);
  } catch (error) {
    // Another instance may have made them meanwhile.
    if ((await missing()).length > 0) throw error;
  }
}

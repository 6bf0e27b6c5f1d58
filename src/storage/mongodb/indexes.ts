/** Creates the missing indexes of a collection, and with them the collection. */
import type { Collection } from 'mongodb';
import { isMissing } from './failures.js';
import { reading } from './tuning.js';

export type IndexKey = Readonly<Record<string, 1>>;

/** Idempotent, even when several instances run it at once. */
export async function ensureIndexes<T extends object>(
  collection: Collection<T>,
  keys: readonly IndexKey[],
): Promise<void> {
  const wanted = keys.map((key) => ({ key, name: Object.entries(key).flat().join('_') }));
  async function missing() {
    try {
      const names = new Set((await collection.indexes(reading)).map(({ name }) => name));
      return wanted.filter(({ name }) => !names.has(name));
    } catch (error) {
      if (isMissing(error)) return wanted;
      throw error;
    }
  }
  // FerretDB drops the connection if there is nothing to create, so they are listed first.
  const created = await missing();
  if (created.length === 0) return;
  try {
    await collection.createIndexes(created);
  } catch (error) {
    // Another instance may have created them meanwhile.
    if ((await missing()).length > 0) throw error;
  }
}

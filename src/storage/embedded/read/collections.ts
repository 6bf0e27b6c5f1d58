/**
 * The collections of the read store: opens them by name and version, and drops them in slices. A drop that a crash
 * interrupted is finished at the next start. Implements `read-store.ts` (collection, drop).
 */
import { yieldToEventLoop } from '../../../kernel/background.js';
import { assertSpec } from '../../read-store-limits.js';
import type { Collection, CollectionSpec } from '../../read-store.js';
import { tuning } from '../tuning.js';
import { createCollection, type CollectionState } from './collection.js';
import {
  collectionPrefix,
  present,
  within,
  type ReadBatch,
  type ReadDatabase,
  type ReadEnvironment,
  type RunWrite,
} from './layout.js';

export interface Collections {
  open(spec: CollectionSpec): Promise<Collection>;
  drop(name: string, version: number): Promise<void>;
  /** Finishes drops that a crash interrupted. Call it first. */
  recover(): Promise<void>;
}

const nameKey = (name: string, version: number): string => `${name}@${version}`;
const counterKey = 'counter/collections';
const droppedPrefix = Buffer.from('dropped/');
/** Marks a dropped collection until everything of it is removed. */
const droppedKey = (collection: number): Buffer => Buffer.concat([droppedPrefix, collectionPrefix(collection)]);
const numberOf = (value: Buffer | undefined): number | undefined =>
  value === undefined ? undefined : Number(value.toString('latin1'));

export function createCollections(environment: ReadEnvironment, run: RunWrite): Collections {
  const states = new Map<string, CollectionState>();

  /** The number of a collection, which is created when missing. */
  function numberIn(batch: ReadBatch, name: string): number {
    const stored = numberOf(batch.get('collections', name));
    if (stored !== undefined) return stored;
    const number = (numberOf(batch.get('state', counterKey)) ?? 0) + 1;
    batch.put('state', counterKey, Buffer.from(`${number}`));
    batch.put('collections', name, Buffer.from(`${number}`));
    return number;
  }

  async function removeAll(database: ReadDatabase, prefix: Buffer): Promise<void> {
    for (;;) {
      // Large slices, because each is a commit: a page that many of the keys lie on is written once.
      const keys = environment.keys(database, { ...within(prefix), limit: tuning.removedKeys });
      if (keys.length === 0) return;
      await run((batch) => {
        for (const key of keys) batch.remove(database, key);
      });
      await yieldToEventLoop();
    }
  }

  async function sweep(number: number): Promise<void> {
    for (const database of ['documents', 'tombstones', 'index', 'counts'] as const) {
      await removeAll(database, collectionPrefix(number));
    }
    await run((batch) => batch.remove('state', droppedKey(number)));
  }

  return {
    async open(spec) {
      assertSpec(spec);
      const name = nameKey(spec.name, spec.version);
      const state = await run((batch) => {
        const number = numberIn(batch, name);
        const open = states.get(name);
        if (open !== undefined && !open.dropped && open.number === number) return open;
        const tombstones = environment.keys('tombstones', { ...within(collectionPrefix(number)), limit: 1 }).length > 0;
        const created = { number, tombstones, dropped: false };
        states.set(name, created);
        return created;
      });
      return createCollection(environment, run, spec, state);
    },
    async drop(name, version) {
      const key = nameKey(name, version);
      const number = await run((batch) => {
        const stored = numberOf(batch.get('collections', key));
        if (stored === undefined) return undefined;
        batch.remove('collections', key);
        batch.put('state', droppedKey(stored), present);
        const state = states.get(key);
        if (state !== undefined) state.dropped = true;
        states.delete(key);
        return stored;
      });
      if (number !== undefined) await sweep(number);
    },
    async recover() {
      const keys = environment.keys('state', { ...within(droppedPrefix), limit: Number.MAX_SAFE_INTEGER });
      for (const key of keys) await sweep(key.readUInt32BE(droppedPrefix.length));
    },
  };
}

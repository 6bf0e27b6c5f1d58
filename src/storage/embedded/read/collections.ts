/**
 * The collections of the read store. Opens them by name and version, fills indexes that were declared later or written
 * in another format, and drops collections in slices. Finishes at the next start what a crash interrupted. Implements
 * `read-store.ts` (collection, drop).
 */
import { yieldToEventLoop } from '../../../kernel/background.js';
import { oneAtATime } from '../../one-at-a-time.js';
import { assertSpec } from '../../read-store-limits.js';
import type { Collection, CollectionSpec, IndexSpec } from '../../read-store.js';
import { createCollection, type CollectionState } from './collection.js';
import { setTotal } from './counts.js';
import { fillIndexes, finishFilling, startFilling } from './fill-indexes.js';
import { indexPrefix } from './index-keys.js';
import {
  collectionPrefix,
  within,
  type ReadBatch,
  type ReadDatabase,
  type ReadEnvironment,
  type RunWrite,
} from './layout.js';
import type { IndexDefinition, OpenIndex } from './query-plan.js';
import { tuning } from '../tuning.js';

interface Definition {
  /**
   * Format of its index entries and counts. Those of another format are rebuilt from the documents when it is opened.
   */
  readonly format: number;
  readonly number: number;
  readonly indexes: readonly IndexDefinition[];
}

/** Raise it when the form of index keys or counts changes. */
const format = 2;

export interface Collections {
  open(spec: CollectionSpec): Promise<Collection>;
  drop(name: string, version: number): Promise<void>;
  /** Finishes drops that a crash interrupted. */
  recover(): Promise<void>;
}

const definitionKey = (name: string, version: number): Buffer => Buffer.from(`${name}@${version}`);
const counterKey = Buffer.from('counter/collections');
const droppedPrefix = Buffer.from('dropped/');
const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));

function droppedKey(collection: number): Buffer {
  return Buffer.concat([droppedPrefix, collectionPrefix(collection)]);
}

function readDefinition(value: Buffer | undefined): Definition | undefined {
  if (value === undefined) return undefined;
  const stored = JSON.parse(value.toString('utf8')) as Partial<Definition> & Pick<Definition, 'number' | 'indexes'>;
  return { ...stored, format: stored.format ?? 1 };
}

const sameIndex = (a: IndexDefinition, { fields, grouped = false }: IndexSpec): boolean =>
  a.grouped === grouped && a.fields.length === fields.length && a.fields.every((field, at) => field === fields[at]);

/** Adds the declared indexes to a definition; new ones are not ready. */
function withIndexes(current: Definition | undefined, spec: CollectionSpec, number: number): Definition {
  const old = current?.indexes ?? [];
  let next = old.reduce((highest, index) => Math.max(highest, index.number), 0);
  const indexes: IndexDefinition[] = [];
  for (const declared of spec.indexes) {
    if (indexes.some((index) => sameIndex(index, declared))) continue;
    const existing = old.find((index) => sameIndex(index, declared));
    const { fields, grouped = false } = declared;
    if (existing !== undefined) indexes.push(existing);
    else indexes.push({ number: (next += 1), fields: [...fields], grouped, ready: current === undefined });
  }
  // Indexes that are no longer declared are kept: an older release may use them at the same time.
  return { format, number, indexes: [...indexes, ...old.filter((index) => !indexes.includes(index))] };
}

const openIndexes = ({ number, indexes }: Definition): readonly OpenIndex[] =>
  indexes.map((index) => ({ ...index, prefix: indexPrefix(number, index.number).toString('latin1') }));

function createState(environment: ReadEnvironment, number: number): CollectionState {
  const [tombstone] = environment.keys('tombstones', { ...within(collectionPrefix(number)), limit: 1 });
  return { number, indexes: [], filling: undefined, tombstones: tombstone !== undefined, dropped: false };
}

export function createCollections(environment: ReadEnvironment, run: RunWrite): Collections {
  const states = new Map<string, CollectionState>();
  const opening = oneAtATime<string>();

  function define(batch: ReadBatch, spec: CollectionSpec): Definition {
    const key = definitionKey(spec.name, spec.version);
    const current = readDefinition(batch.get('collections', key));
    let number = current?.number;
    if (number === undefined) {
      const counter = batch.get('state', counterKey);
      number = (counter === undefined ? 0 : Number(counter.toString('utf8'))) + 1;
      batch.put('state', counterKey, Buffer.from(`${number}`));
    }
    if (current !== undefined && current.format !== format)
      throw new Error(`${key.toString('utf8')} is of another format`);
    const definition = withIndexes(current, spec, number);
    batch.put('collections', key, json(definition));
    return definition;
  }

  async function removeAll(database: ReadDatabase, prefix: Buffer): Promise<void> {
    const range = within(prefix);
    for (;;) {
      // Large slices, because each is a commit: a page that many of the keys lie on is written once.
      const keys = environment.keys(database, { ...range, limit: tuning.removedKeys });
      if (keys.length === 0) return;
      await run((batch) => {
        for (const key of keys) batch.remove(database, key);
      });
      await yieldToEventLoop();
    }
  }

  /**
   * Removes everything that another release wrote in another format, except the documents; the indexes are then
   * refilled.
   */
  async function convert(key: Buffer): Promise<void> {
    const current = readDefinition(environment.get('collections', key));
    if (current === undefined || current.format === format) return;
    const prefix = collectionPrefix(current.number);
    for (const database of ['indexes', 'counts'] as const) await removeAll(database, prefix);
    await run((batch) => {
      setTotal(batch, current.number, environment.count('documents', within(prefix)));
      batch.put('collections', key, json({ format, number: current.number, indexes: [] }));
    });
  }

  /** Fills the indexes that are not ready, and their counts. Starts over after a crash. */
  async function fill(key: Buffer, state: CollectionState): Promise<void> {
    const { number } = state;
    const missing = state.indexes.filter(({ ready }) => !ready);
    try {
      for (;;) {
        // What an earlier try has left.
        for (const index of missing) {
          for (const database of ['indexes', 'counts'] as const) {
            await removeAll(database, indexPrefix(number, index.number));
          }
        }
        const filling = startFilling(missing);
        await run(() => {
          state.filling = filling;
        });
        await fillIndexes(environment, run, filling, number);
        const done = await run((batch) => {
          if (!finishFilling(batch, filling)) return false;
          state.indexes = state.indexes.map((index) => ({ ...index, ready: true }));
          state.filling = undefined;
          const indexes = state.indexes.map(({ prefix: _prefix, ...index }) => index);
          batch.put('collections', key, json({ format, number, indexes }));
          return true;
        });
        if (done) return;
      }
    } finally {
      state.filling = undefined;
    }
  }

  async function open(spec: CollectionSpec): Promise<Collection> {
    const key = definitionKey(spec.name, spec.version);
    const name = key.toString('utf8');
    await convert(key);
    // The state changes inside the operation, so that later writes of the same group update the new indexes.
    const state = await run((batch) => {
      const definition = define(batch, spec);
      const open = states.get(name);
      const current: CollectionState =
        open === undefined || open.dropped || open.number !== definition.number
          ? createState(environment, definition.number)
          : open;
      current.indexes = openIndexes(definition);
      states.set(name, current);
      return current;
    });
    if (state.indexes.some(({ ready }) => !ready)) await fill(key, state);
    return createCollection(environment, run, spec, state);
  }

  async function sweep(number: number): Promise<void> {
    for (const database of ['documents', 'tombstones', 'indexes', 'counts'] as const) {
      await removeAll(database, collectionPrefix(number));
    }
    await run((batch) => batch.remove('state', droppedKey(number)));
  }

  return {
    async open(spec) {
      assertSpec(spec);
      // Two openings at once would fill the same index twice.
      return opening(`${spec.name}@${spec.version}`, () => open(spec));
    },
    async drop(name, version) {
      const key = definitionKey(name, version);
      const number = await run((batch) => {
        const definition = readDefinition(batch.get('collections', key));
        if (definition === undefined) return undefined;
        batch.remove('collections', key);
        batch.put('state', droppedKey(definition.number), Buffer.from('1'));
        const state = states.get(key.toString('utf8'));
        if (state !== undefined) state.dropped = true;
        states.delete(key.toString('utf8'));
        return definition.number;
      });
      if (number !== undefined) await sweep(number);
    },
    async recover() {
      const dropped = environment.keys('state', { ...within(droppedPrefix), limit: tuning.sliceEntries });
      for (const key of dropped) await sweep(key.readUInt32BE(droppedPrefix.length));
    },
  };
}

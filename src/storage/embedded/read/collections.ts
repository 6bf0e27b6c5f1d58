/**
 * The collections of the read store. Opens them by name and version, fills indexes that were declared
 * later, and drops collections in slices. Finishes at the next start what a crash interrupted. Implements
 * `read-store.ts` (collection, drop).
 */
import { yieldToEventLoop } from '../../../kernel/background.js';
import { oneAtATime } from '../../one-at-a-time.js';
import { assertSpec } from '../../read-store-limits.js';
import type { Collection, CollectionSpec, IndexSpec } from '../../read-store.js';
import { createCollection, type CollectionState } from './collection.js';
import { fillIndexes, finishFilling, startFilling, startGathering, type Filling } from './fill-indexes.js';
import { indexDatabase, openIndexDatabases, sharedDatabase } from './index-databases.js';
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
  readonly number: number;
  /** The number of the database of its index entries (`index-databases.ts`). */
  readonly database: number;
  readonly indexes: readonly IndexDefinition[];
}

export interface Collections {
  open(spec: CollectionSpec): Promise<Collection>;
  drop(name: string, version: number): Promise<void>;
  /** Finishes drops that a crash interrupted. Call it first. */
  recover(): Promise<void>;
}

const definitionKey = (name: string, version: number): Buffer => Buffer.from(`${name}@${version}`);
const counterKey = Buffer.from('counter/collections');
const droppedPrefix = Buffer.from('dropped/');
const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));

function droppedKey(collection: number): Buffer {
  return Buffer.concat([droppedPrefix, collectionPrefix(collection)]);
}

/** What is stored of a dropped collection until everything of it is removed. */
type Dropped = Pick<Definition, 'database'>;

const readDropped = (value: Buffer): Dropped => JSON.parse(value.toString('utf8')) as Dropped;

/** The owner of the index entries of a dropped collection until they are removed. */
const droppedOwner = (collection: number): string => `dropped/${collection}`;

const readDefinition = (value: Buffer): Definition => JSON.parse(value.toString('utf8')) as Definition;

const sameIndex = (a: IndexDefinition, { fields, grouped = false }: IndexSpec): boolean =>
  a.grouped === grouped && a.fields.length === fields.length && a.fields.every((field, at) => field === fields[at]);

/** Adds the declared indexes to a definition; new ones are not ready. */
function withIndexes(
  current: Definition | undefined,
  spec: CollectionSpec,
  number: number,
  database: number,
): Definition {
  const old = current?.indexes ?? [];
  let next = old.reduce((highest, index) => Math.max(highest, index.number), 0);
  const indexes: IndexDefinition[] = [];
  const ready = current === undefined && spec.indexedLater !== true;
  for (const declared of spec.indexes) {
    if (indexes.some((index) => sameIndex(index, declared))) continue;
    const existing = old.find((index) => sameIndex(index, declared));
    const { fields, grouped = false } = declared;
    if (existing !== undefined) indexes.push(existing);
    else indexes.push({ number: (next += 1), fields: [...fields], grouped, ready });
  }
  // Indexes that are no longer declared are kept: an older release may use them at the same time.
  return { number, database, indexes: [...indexes, ...old.filter((index) => !indexes.includes(index))] };
}

const openIndexes = ({ number, indexes }: Definition): readonly OpenIndex[] =>
  indexes.map((index) => ({ ...index, prefix: indexPrefix(number, index.number).toString('latin1') }));

function createState(environment: ReadEnvironment, number: number, database: number): CollectionState {
  const [tombstone] = environment.keys('tombstones', { ...within(collectionPrefix(number)), limit: 1 });
  return {
    number,
    indexDatabase: indexDatabase(database),
    indexes: [],
    filling: undefined,
    tombstones: tombstone !== undefined,
    dropped: false,
  };
}

/** What was gathered from writes, if it is of use for these indexes. */
function takeGathered(state: CollectionState, missing: readonly OpenIndex[]): Filling | undefined {
  const { filling } = state;
  if (filling === undefined) return undefined;
  state.filling = undefined;
  const covers =
    filling.indexes.length === missing.length &&
    missing.every(({ number }) => filling.indexes.some((index) => index.number === number));
  if (!filling.fromWrites || filling.spoiled || !covers) return undefined;
  filling.fromWrites = false;
  state.filling = filling;
  return filling;
}

/** Bounds of all keys that start with the number of a collection. */
const firstKey = collectionPrefix(0);
const afterAllKeys = Buffer.alloc(5, 0xff);
const everything = { from: Buffer.from([0]), to: afterAllKeys, limit: Number.MAX_SAFE_INTEGER };

/** Who holds which database of index entries, and which drops were interrupted. */
function readOwners(environment: ReadEnvironment): {
  readonly owners: Map<string, number>;
  readonly dropped: Map<number, number>;
} {
  const owners = new Map<string, number>();
  for (const { key, value } of environment.entries('collections', everything)) {
    owners.set(key.toString('utf8'), readDefinition(value).database);
  }
  const dropped = new Map<number, number>();
  for (const { key, value } of environment.entries('state', { ...everything, ...within(droppedPrefix) })) {
    const number = key.readUInt32BE(droppedPrefix.length);
    const { database } = readDropped(value);
    dropped.set(number, database);
    owners.set(droppedOwner(number), database);
  }
  return { owners, dropped };
}

export function createCollections(environment: ReadEnvironment, run: RunWrite): Collections {
  const states = new Map<string, CollectionState>();
  const opening = oneAtATime<string>();
  const { owners, dropped } = readOwners(environment);
  const databases = openIndexDatabases(environment, owners);

  /** An empty database for the index entries of a collection. */
  function takeDatabase(batch: ReadBatch, owner: string): number {
    const number = databases.take(owner);
    const name = indexDatabase(number);
    if (number === sharedDatabase) return number;
    if (environment.keys(name, { from: firstKey, to: afterAllKeys, limit: 1 }).length > 0) batch.clear(name);
    return number;
  }

  /** Runs in an operation, while nothing is written: the library may have to create databases. */
  function define(batch: ReadBatch, spec: CollectionSpec): Definition & { readonly created: boolean } {
    const key = definitionKey(spec.name, spec.version);
    const stored = batch.get('collections', key);
    const current = stored === undefined ? undefined : readDefinition(stored);
    let number = current?.number;
    if (number === undefined) {
      const counter = batch.get('state', counterKey);
      number = (counter === undefined ? 0 : Number(counter.toString('utf8'))) + 1;
      batch.put('state', counterKey, Buffer.from(`${number}`));
    }
    const database = current?.database ?? takeDatabase(batch, key.toString('utf8'));
    const definition = withIndexes(current, spec, number, database);
    batch.put('collections', key, json(definition));
    return { ...definition, database, created: current === undefined };
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

  /** Removes what an earlier try has left of the entries. */
  async function startOver(state: CollectionState, missing: readonly OpenIndex[]): Promise<Filling> {
    for (const index of missing) {
      for (const database of [state.indexDatabase, 'counts'] as const) {
        await removeAll(database, indexPrefix(state.number, index.number));
      }
    }
    const filling = startFilling(state.indexDatabase, missing);
    await run(() => {
      state.filling = filling;
    });
    return filling;
  }

  /** Fills the indexes that are not ready, and their counts. Starts over after a crash. */
  async function fill(key: Buffer, database: number, state: CollectionState): Promise<void> {
    const { number } = state;
    const missing = state.indexes.filter(({ ready }) => !ready);
    try {
      for (;;) {
        // From here on a change of a document changes its entries, also the gathered ones.
        const gathered = await run(() => takeGathered(state, missing));
        const filling = gathered ?? (await startOver(state, missing));
        await fillIndexes(environment, run, filling, number);
        const done = await run((batch) => {
          if (!finishFilling(batch, filling)) return false;
          state.indexes = state.indexes.map((index) => ({ ...index, ready: true }));
          state.filling = undefined;
          const indexes = state.indexes.map(({ prefix: _prefix, ...index }) => index);
          batch.put('collections', key, json({ number, database, indexes }));
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
    // The state changes inside the operation, so that later writes of the same group update the new indexes.
    const { state, database } = await run((batch) => {
      const definition = define(batch, spec);
      const open = states.get(name);
      const current: CollectionState =
        open === undefined || open.dropped || open.number !== definition.number
          ? createState(environment, definition.number, definition.database)
          : open;
      current.indexes = openIndexes(definition);
      if (spec.indexedLater === true && definition.created) {
        current.filling = startGathering(current.indexDatabase, current.indexes, current.number);
      }
      states.set(name, current);
      return { state: current, database: definition.database };
    });
    if (spec.indexedLater !== true && state.indexes.some(({ ready }) => !ready)) await fill(key, database, state);
    return createCollection(environment, run, spec, state);
  }

  async function sweep(number: number, database: number): Promise<void> {
    for (const name of ['documents', 'tombstones', 'counts'] as const) await removeAll(name, collectionPrefix(number));
    if (database === sharedDatabase) await removeAll(indexDatabase(database), collectionPrefix(number));
    await run((batch) => {
      if (database !== sharedDatabase) batch.clear(indexDatabase(database));
      batch.remove('state', droppedKey(number));
    });
    databases.free(droppedOwner(number));
  }

  return {
    async open(spec) {
      assertSpec(spec);
      // Two openings at once would fill the same index twice.
      return opening(`${spec.name}@${spec.version}`, () => open(spec));
    },
    async drop(name, version) {
      const key = definitionKey(name, version);
      const owner = key.toString('utf8');
      const definition = await run((batch) => {
        const stored = batch.get('collections', key);
        if (stored === undefined) return undefined;
        const current = readDefinition(stored);
        batch.remove('collections', key);
        const { database } = current;
        batch.put('state', droppedKey(current.number), json({ database } satisfies Dropped));
        const state = states.get(owner);
        if (state !== undefined) state.dropped = true;
        states.delete(owner);
        databases.pass(owner, droppedOwner(current.number));
        return current;
      });
      if (definition !== undefined) await sweep(definition.number, definition.database);
    },
    async recover() {
      for (const [number, database] of dropped) await sweep(number, database);
    },
  };
}

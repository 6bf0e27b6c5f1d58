/**
 * The collections of the read store: opened by name and version, their indexes filled when they are declared later,
 * dropped in slices; what a crash interrupts is finished at the next opening. Implements `read-store.ts` (collection, drop).
 */
import { limits } from '../../../kernel/limits.js';
import { assertSpec } from '../../collection-spec.js';
import type { Collection, CollectionSpec } from '../../read-store.js';
import { createCollection, fillIndexes, type CollectionState } from './collection.js';
import {
  collectionPrefix,
  within,
  type ReadBatch,
  type ReadDatabase,
  type ReadEnvironment,
  type RunWrite,
} from './layout.js';
import type { IndexDefinition } from './query-plan.js';

interface Definition {
  readonly number: number;
  readonly indexes: readonly IndexDefinition[];
}

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
  return value === undefined ? undefined : (JSON.parse(value.toString('utf8')) as Definition);
}

const sameFields = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((field, index) => field === b[index]);

/** The definition with an entry for each declared index; new ones are not ready. Undeclared ones are forgotten. */
function withIndexes(current: Definition | undefined, spec: CollectionSpec, number: number): Definition {
  const old = current?.indexes ?? [];
  let next = old.reduce((highest, index) => Math.max(highest, index.number), 0);
  const indexes: IndexDefinition[] = [];
  for (const { fields } of spec.indexes) {
    if (indexes.some((index) => sameFields(index.fields, fields))) continue;
    const known = old.find((index) => sameFields(index.fields, fields));
    if (known !== undefined) indexes.push(known);
    else indexes.push({ number: (next += 1), fields: [...fields], ready: current === undefined });
  }
  // One that is no longer declared is still kept up: an older release may use it at the same time.
  return { number, indexes: [...indexes, ...old.filter((index) => !indexes.includes(index))] };
}

export function createCollections(environment: ReadEnvironment, run: RunWrite): Collections {
  const states = new Map<string, CollectionState>();
  const opening = new Map<string, Promise<Collection>>();

  function define(batch: ReadBatch, spec: CollectionSpec): Definition {
    const key = definitionKey(spec.name, spec.version);
    const current = readDefinition(batch.get('collections', key));
    let number = current?.number;
    if (number === undefined) {
      const counter = batch.get('state', counterKey);
      number = (counter === undefined ? 0 : Number(counter.toString('utf8'))) + 1;
      batch.put('state', counterKey, Buffer.from(`${number}`));
    }
    const definition = withIndexes(current, spec, number);
    batch.put('collections', key, json(definition));
    return definition;
  }

  async function open(spec: CollectionSpec): Promise<Collection> {
    const key = definitionKey(spec.name, spec.version);
    const name = key.toString('utf8');
    // The state changes inside the operation: writes that follow it in the same group keep the new indexes up.
    const state = await run((batch) => {
      const definition = define(batch, spec);
      const known = states.get(name);
      const found =
        known === undefined || known.dropped || known.number !== definition.number
          ? { ...definition, dropped: false }
          : known;
      found.indexes = definition.indexes;
      states.set(name, found);
      return found;
    });
    if (state.indexes.some(({ ready }) => !ready)) {
      let from: Buffer | undefined = within(collectionPrefix(state.number)).from;
      while (from !== undefined) {
        const start: Buffer = from;
        from = await run((batch) => fillIndexes(environment, batch, state, start));
      }
      await run((batch) => {
        state.indexes = state.indexes.map((index) => ({ ...index, ready: true }));
        batch.put('collections', key, json({ number: state.number, indexes: state.indexes }));
      });
    }
    return createCollection(environment, run, spec, state);
  }

  async function removeAll(database: ReadDatabase, prefix: Buffer): Promise<void> {
    const range = within(prefix);
    for (;;) {
      const keys = environment.keys(database, { ...range, limit: limits.storage.sliceEntries });
      if (keys.length === 0) return;
      await run((batch) => {
        for (const key of keys) batch.remove(database, key);
      });
    }
  }

  async function sweep(number: number): Promise<void> {
    for (const database of ['documents', 'tombstones', 'indexes'] as const) {
      await removeAll(database, collectionPrefix(number));
    }
    await run((batch) => batch.remove('state', droppedKey(number)));
  }

  return {
    async open(spec) {
      assertSpec(spec);
      // One after the other per collection: two that fill the same index would only do it twice.
      const name = `${spec.name}@${spec.version}`;
      const before = opening.get(name);
      const mine = (async () => {
        await before?.catch(() => undefined);
        return open(spec);
      })();
      opening.set(name, mine);
      try {
        return await mine;
      } finally {
        if (opening.get(name) === mine) opening.delete(name);
      }
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
      const dropped = environment.keys('state', { ...within(droppedPrefix), limit: limits.storage.sliceEntries });
      for (const key of dropped) await sweep(key.readUInt32BE(droppedPrefix.length));
    },
  };
}

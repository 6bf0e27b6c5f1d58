/**
 * The embedded read store: the port `ReadStore` on its own LMDB environment, so that a flush of the log never waits for
 * a flush of the read models. Implements `docs/architecture.md#storage`.
 */
import type { Clock } from '../../../kernel/clock.js';
import { ServiceError } from '../../../kernel/errors.js';
import type { Logger } from '../../../kernel/logger.js';
import { answering } from '../../answer-unavailable.js';
import { isAfter } from '../../event-store.js';
import { notWritten } from '../../store-access.js';
import type { Checkpoint, Collection, CollectionSpec, ReadStore } from '../../read-store.js';
import { openEnvironment, type Durability } from '../environment.js';
import { createGroupWriter } from '../group-writer.js';
import type { Ownership } from '../ownership.js';
import {
  readDatabases,
  type ReadBatch,
  collectionPrefix,
  present,
  within,
  type ReadDatabase,
  type ReadEnvironment,
  type RunWrite,
} from './layout.js';
import { createLeases } from './leases.js';
import { yieldToEventLoop } from '../../../kernel/background.js';
import { assertSpec } from '../../bounds.js';
import { tuning } from '../tuning.js';
import { createCollection, type CollectionState } from './collection.js';

const checkpointKey = (projection: string, version: number): Buffer =>
  Buffer.from(`checkpoint/${projection}@${version}`);
const activeKey = (projection: string): Buffer => Buffer.from(`active/${projection}`);

function parse<T>(value: Buffer | undefined): T | undefined {
  return value === undefined ? undefined : (JSON.parse(value.toString('utf8')) as T);
}

/**
 * Opens the read store in the folder `path` and finishes what a crash interrupted.
 * @throws the library's error when its files cannot be opened
 */
export async function openReadStore(
  path: string,
  ownership: Ownership,
  clock: Clock,
  logger: Logger,
): Promise<ReadStore> {
  const environment = openEnvironment({ path, databases: readDatabases, mixed: true, ownership, logger });
  const writer = createGroupWriter(environment);
  let closing: Promise<void> | undefined;

  async function run<T>(operation: (batch: ReadBatch) => T, durability?: Durability): Promise<T> {
    const written = await writer.run(operation, durability);
    if (written.kind === 'durable') return written.value;
    throw notWritten('read store', written.cause);
  }

  const collections = createCollections(environment, run);
  try {
    await collections.recover();
  } catch (error) {
    await environment.close();
    throw error;
  }

  return answering({
    collection: collections.open,
    drop: collections.drop,
    loadCheckpoint: async (projection, version) =>
      parse<Checkpoint>(environment.get('state', checkpointKey(projection, version))),
    saveCheckpoint: (projection, version, checkpoint) =>
      run((batch) => {
        const key = checkpointKey(projection, version);
        const stored = parse<Checkpoint>(batch.get('state', key));
        if (stored !== undefined && !isAfter(checkpoint, stored)) return;
        batch.put('state', key, Buffer.from(JSON.stringify(checkpoint)));
      }),
    deleteCheckpoint: (projection, version) =>
      run((batch) => batch.remove('state', checkpointKey(projection, version))),
    activeVersion: async (projection) => parse<number>(environment.get('state', activeKey(projection))),
    activate: (projection, version) =>
      run((batch) => batch.put('state', activeKey(projection), Buffer.from(`${version}`))),
    leases: createLeases(clock),
    // The log in the same folder has a better time.
    time: async () => undefined,
    async ping() {
      if (closing !== undefined) throw new ServiceError('unavailable', 'The read store is closed.');
      if (writer.failing())
        await run((batch) => batch.put('state', Buffer.from('probe'), Buffer.from(`${clock.now()}`)));
      environment.probe();
    },
    close() {
      closing ??= (async () => {
        await writer.close();
        await environment.close();
      })();
      return closing;
    },
  });
}

const nameKey = (name: string, version: number): string => `${name}@${version}`;
const counterKey = 'counter/collections';
const droppedPrefix = Buffer.from('dropped/');
/** Marks a dropped collection until all of it is removed. */
const droppedKey = (collection: number): Buffer => Buffer.concat([droppedPrefix, collectionPrefix(collection)]);
const numberOf = (value: Buffer | undefined): number | undefined =>
  value === undefined ? undefined : Number(value.toString('latin1'));

function createCollections(environment: ReadEnvironment, run: RunWrite) {
  const states = new Map<string, CollectionState>();

  /** The number of a collection, which is created if missing. */
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
      // Large slices, because each is a commit, and a page with many of the keys is then written only once.
      const keys = environment.keys(database, { ...within(prefix), limit: tuning.removedKeys });
      if (keys.length === 0) return;
      await run((batch) => {
        for (const key of keys) batch.remove(database, key);
      });
      await yieldToEventLoop();
    }
  }

  async function sweep(number: number): Promise<void> {
    for (const database of ['documents', 'index', 'counts'] as const) {
      await removeAll(database, collectionPrefix(number));
    }
    await run((batch) => batch.remove('state', droppedKey(number)));
  }

  return {
    async open(spec: CollectionSpec): Promise<Collection> {
      assertSpec(spec);
      const name = nameKey(spec.name, spec.version);
      const state = await run((batch) => {
        const number = numberIn(batch, name);
        const open = states.get(name);
        if (open !== undefined && !open.dropped && open.number === number) return open;
        const created = { number, dropped: false };
        states.set(name, created);
        return created;
      });
      return createCollection(environment, run, spec, state);
    },
    async drop(name: string, version: number): Promise<void> {
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
    /** Finishes drops that a crash interrupted. Call it first. */
    async recover(): Promise<void> {
      const keys = environment.keys('state', { ...within(droppedPrefix), limit: Number.MAX_SAFE_INTEGER });
      for (const key of keys) await sweep(key.readUInt32BE(droppedPrefix.length));
    },
  };
}

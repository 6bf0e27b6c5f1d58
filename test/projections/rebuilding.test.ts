/**
 * Rebuilds of small read models on stores in memory: what is filled, switched, dropped, resumed and refused. With the read
 * models of this release on real stores, and beside a service that runs, this is in `test/maintenance`.
 */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ServiceError } from '../../src/kernel/errors.js';
import { streams } from '../../src/kernel/event.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { placeOf, readLayoutRecord, announceReading, stopReading } from '../../src/projections/engine/layout.js';
import { openParking } from '../../src/projections/engine/parked.js';
import type { ReadModel } from '../../src/projections/read-model.js';
import { groupName } from '../../src/projections/read-models.js';
import { rebuildReadModels, type RebuildOptions, type RebuildOutcome } from '../../src/projections/rebuild/rebuild.js';
import { tuning } from '../../src/projections/tuning.js';
import type { EventStore } from '../../src/storage/event-store.js';
import type { Fields, ReadStore } from '../../src/storage/read-store.js';
import { append, openReadSide, planned, type ReadSide } from '../support/read-side.js';
import { shortSleeps, turnsWhile, type ShortSleeps } from '../support/short-sleeps.js';
import { storesInMemory } from '../support/stores-in-memory.js';
import { eventually } from '../support/eventually.js';

const release = 3;
/** Counts the events of one type for each of the ids that they name. */
const counting = (name: string, type: string): ReadModel => ({
  name,
  keys: (event) => (event.type === type ? [String(event.data['id'])] : []),
  evolve: (fields, { data }) => {
    if (data['bad'] === true) throw new Error('cannot be folded');
    return { count: Number(fields?.['count'] ?? 0) + 1 };
  },
});
const models = [counting('nodes', 'NodeCreated'), counting('upstreams', 'UpstreamCreated')];
const created = (id: string, bad = false) => planned(streams.fleet, [{ type: 'NodeCreated', data: { id, bad } }]);
const upstream = (id: string) => planned(streams.fleet, [{ type: 'UpstreamCreated', data: { id } }]);

let side: ReadSide;
let eventStore: EventStore;
let readStore: ReadStore;
let progress: (readonly [events: number, position: number, head: number])[];
let warnings: string[];
let sleeps: ShortSleeps | undefined;
beforeEach(async () => {
  side = await openReadSide(silentLogger, { inMemory: true });
  ({ eventStore, readStore } = side.stores);
  [progress, warnings] = [[], []];
});
afterEach(async () => {
  vi.restoreAllMocks();
  sleeps?.restore();
  sleeps = undefined;
  await side.close();
});

const rebuild = (more: Partial<RebuildOptions> = {}): Promise<RebuildOutcome> =>
  rebuildReadModels({
    eventStore,
    readStore,
    logger: { ...silentLogger, warn: (_fields, message) => void warnings.push(message) },
    version: release,
    models,
    signal: new AbortController().signal,
    onProgress: (...numbers) => void progress.push(numbers),
    readersMs: 0,
    ...more,
  });
/** Follows the log with the read models in use until they hold all of it, and ends. */
const follow = async (): Promise<void> => (await side.started({ version: release, models })).close();
const record = () => readLayoutRecord(readStore, release);
const place = (number: number): number => placeOf(release, number);

async function held(name: string, version: number): Promise<Readonly<Record<string, Fields>>> {
  const collection = await readStore.collection({ name, version });
  const items = await collection.list(undefined, 10_000);
  return Object.fromEntries(items.map(({ id, fields }) => [id, fields]));
}
/** The documents that queries read. */
async function inUse(): Promise<readonly Readonly<Record<string, Fields>>[]> {
  const { layout } = await record();
  return Promise.all(models.map(({ name }) => held(name, layout.places.get(name) ?? release)));
}
/** Writes a document that the log does not have, which only a rebuild removes. */
async function spoil(name: string, version: number): Promise<void> {
  const collection = await readStore.collection({ name, version });
  await collection.write([{ id: 'spoilt', position: 1, fields: { count: 9 } }]);
}
/** A signal that aborts once the rebuild has written documents of a read model. */
function interrupted(name: string): Pick<RebuildOptions, 'readStore' | 'signal'> {
  const stop = new AbortController();
  const inner = readStore;
  return {
    signal: stop.signal,
    readStore: {
      ...inner,
      async collection(spec) {
        const collection = await inner.collection(spec);
        if (spec.name !== name) return collection as never;
        return {
          ...collection,
          async write(writes: Parameters<typeof collection.write>[0]) {
            const written = await collection.write(writes);
            stop.abort();
            return written;
          },
        } as never;
      },
    },
  };
}
const checkpointOf = (name: string, number: number) => readStore.loadCheckpoint(name, place(number));
const filling = 'read_models_rebuild';
const lease = () => readStore.leases.list('read_model_rebuilds');

describe('a rebuild of all read models', () => {
  it('fills new collections, points the layout to them, and leaves nothing of the old ones', async () => {
    await side.append([created('a'), created('a'), upstream('u')]);
    await follow();
    await spoil('nodes', release);
    expect(await rebuild()).toEqual({ kind: 'done', events: 3, resumed: false, dropped: true });
    expect(await record()).toEqual({
      layout: {
        number: 1,
        places: new Map([
          ['nodes', place(1)],
          ['upstreams', place(1)],
        ]),
      },
      filling: undefined,
      leftovers: [],
    });
    expect(await inUse()).toEqual([{ a: { count: 2 } }, { u: { count: 1 } }]);
    expect([await held('nodes', release), await held('upstreams', release)]).toEqual([{}, {}]);
    expect(await checkpointOf(groupName, 0)).toBeUndefined();
    expect(await checkpointOf(groupName, 1)).toMatchObject({ commit: await eventStore.headPosition() });
    expect(await checkpointOf(filling, 1)).toBeUndefined();
    expect(await lease()).toEqual([]);
    const head = await eventStore.headPosition();
    expect([progress[0], progress.at(-1)]).toEqual([
      [0, 0, head],
      [3, head, head],
    ]);
    // The next one is another place, and the service goes on with it.
    await side.append([created('b')]);
    expect(await rebuild()).toMatchObject({ events: 4, dropped: true });
    expect((await record()).layout.number).toBe(2);
    expect(await held('nodes', place(1))).toEqual({});
    await side.append([created('b')]);
    await follow();
    expect(await inUse()).toEqual([{ a: { count: 2 }, b: { count: 2 } }, { u: { count: 1 } }]);
  });

  it('of an empty log leaves no checkpoint', async () => {
    expect(await rebuild()).toEqual({ kind: 'done', events: 0, resumed: false, dropped: true });
    expect((await record()).layout.number).toBe(1);
    expect(await checkpointOf(groupName, 1)).toBeUndefined();
  });

  it('is possible on another log than the read models are from', async () => {
    await side.append([created('a'), created('b')]);
    await follow();
    const other = storesInMemory().eventStore;
    await append(other, created('c'));
    await expect(rebuild({ eventStore: other, only: 'nodes' })).rejects.toThrow(/rebuild all of them, not one$/);
    expect(await record()).toMatchObject({ layout: { number: 0 }, filling: undefined });
    expect(await rebuild({ eventStore: other })).toMatchObject({ kind: 'done', events: 1 });
    expect(await inUse()).toEqual([{ c: { count: 1 } }, {}]);
  });
});

describe('a rebuild of one read model', () => {
  it('leaves the others where they are', async () => {
    await side.append([created('a'), upstream('u')]);
    await follow();
    await spoil('nodes', release);
    await spoil('upstreams', release);
    const parked = { projection: 'upstreams', id: 'x', position: 5, error: 'E' };
    await (await openParking(readStore, release)).add([parked, { ...parked, projection: 'nodes' }]);
    expect(await rebuild({ only: 'nodes' })).toMatchObject({ kind: 'done', dropped: true });
    expect(await inUse()).toEqual([{ a: { count: 1 } }, { u: { count: 1 }, spoilt: { count: 9 } }]);
    expect((await record()).layout).toEqual({ number: 1, places: new Map([['nodes', place(1)]]) });
    // Parked entities of the others stay parked.
    expect((await openParking(readStore, place(1))).list()).toEqual([parked]);
    expect((await openParking(readStore, release)).list()).toEqual([]);
    expect(await rebuild({ only: 'upstreams' })).toMatchObject({ kind: 'done', dropped: true });
    expect(await inUse()).toEqual([{ a: { count: 1 } }, { u: { count: 1 } }]);
    expect((await openParking(readStore, place(2))).list()).toEqual([]);
    expect((await record()).layout.places).toEqual(
      new Map([
        ['nodes', place(1)],
        ['upstreams', place(2)],
      ]),
    );
  });

  it('does not lose commands that the others have not followed yet', async () => {
    await side.append([created('a'), upstream('u')]);
    await follow();
    const before = await checkpointOf(groupName, 0);
    await side.append([upstream('later')]);
    await rebuild({ only: 'nodes' });
    expect(await checkpointOf(groupName, 1)).toEqual(before);
    await follow();
    expect((await inUse())[1]).toEqual({ u: { count: 1 }, later: { count: 1 } });
  });

  it('does not go back behind what it has folded itself', async () => {
    await side.append([created('a')]);
    await follow();
    const { commit = 0 } = (await checkpointOf(groupName, 0)) ?? {};
    // Two instances: one is ahead of what the rebuild sees.
    await readStore.saveCheckpoint(groupName, release, { commit, prepare: commit + 1, anchors: [] });
    await rebuild({ only: 'nodes' });
    expect(await checkpointOf(groupName, 1)).toMatchObject({ commit, prepare: commit });
    // And the other way round, as with a store whose positions have two numbers.
    await readStore.deleteCheckpoint(groupName, place(1));
    await readStore.saveCheckpoint(groupName, place(1), { commit, prepare: commit - 1, anchors: [] });
    await rebuild({ only: 'nodes' });
    expect(await checkpointOf(groupName, 2)).toMatchObject({ commit, prepare: commit - 1 });
  });

  it('has no checkpoint where the others have none', async () => {
    await side.append([created('a')]);
    await rebuild({ only: 'nodes' });
    expect(await checkpointOf(groupName, 1)).toBeUndefined();
    await follow();
    expect(await inUse()).toEqual([{ a: { count: 1 } }, {}]);
  });

  it('that does not exist is refused, with the names of those that do', async () => {
    await expect(rebuild({ only: 'users' })).rejects.toThrow(/"users".*expected one of nodes, upstreams$/);
    expect(await lease()).toEqual([]);
  });
});

describe('an interrupted rebuild', () => {
  it('leaves the read models in use as they are, and is resumed where it stopped', async () => {
    await side.append([created('a'), upstream('u')]);
    await follow();
    await spoil('nodes', release);
    const before = await inUse();
    expect(await rebuild(interrupted('nodes'))).toEqual({ kind: 'interrupted', events: expect.any(Number) });
    expect(await inUse()).toEqual(before);
    expect(await record()).toMatchObject({ layout: { number: 0 }, filling: { number: 1, only: null } });
    expect(await lease()).toEqual([]);
    await side.append([created('b')]);
    expect(await rebuild()).toMatchObject({ kind: 'done', resumed: true, dropped: true });
    expect((await record()).layout.number).toBe(1);
    expect(await inUse()).toEqual([{ a: { count: 1 }, b: { count: 1 } }, { u: { count: 1 } }]);
  });

  it('does not fold again what its checkpoint holds', async () => {
    await side.append([created('a'), created('a')]);
    const [first] = [await rebuild(interrupted('nodes'))];
    expect(first.kind).toBe('interrupted');
    const position = await eventStore.headPosition();
    await readStore.saveCheckpoint(filling, place(1), { commit: position, prepare: position, anchors: [] });
    await side.append([upstream('u')]);
    progress.length = 0;
    expect(await rebuild()).toMatchObject({ kind: 'done', resumed: true, events: 1 });
    expect(progress[0]?.slice(0, 2)).toEqual([0, position]);
    expect(await inUse()).toEqual([{ a: { count: 2 } }, { u: { count: 1 } }]);
  });

  it('is given up for a rebuild of something else, which drops what it filled', async () => {
    await side.append([created('a'), upstream('u')]);
    await follow();
    await rebuild(interrupted('nodes'));
    expect(await rebuild({ ...interrupted('nodes'), only: 'nodes' })).toMatchObject({ kind: 'interrupted' });
    const collections = models.map(({ name }) => ({ name, version: place(1) }));
    expect(await record()).toMatchObject({
      filling: { number: 2, only: 'nodes' },
      leftovers: [{ number: 1, collections }],
    });
    expect(await rebuild({ only: 'upstreams' })).toMatchObject({ kind: 'done', resumed: false, dropped: true });
    expect(await record()).toMatchObject({ layout: { number: 3 }, filling: undefined, leftovers: [] });
    expect([await held('nodes', place(1)), await held('nodes', place(2))]).toEqual([{}, {}]);
    expect([await checkpointOf(filling, 1), await checkpointOf(filling, 2)]).toEqual([undefined, undefined]);
    expect(await inUse()).toEqual([{ a: { count: 1 } }, { u: { count: 1 } }]);
  });

  it('of another log is not resumed', async () => {
    await side.append([created('a')]);
    await rebuild(interrupted('nodes'));
    const point = { commit: 10, prepare: 10, anchors: [{ stream: streams.fleet, revision: 0, id: 'another' }] };
    await readStore.saveCheckpoint(filling, place(1), point);
    expect(await rebuild()).toMatchObject({ kind: 'done', resumed: false, events: 1 });
    expect((await record()).layout.number).toBe(2);
    expect(await held('nodes', place(1))).toEqual({});
  });
});

describe('a log that cannot be folded', () => {
  it.each([
    ['an event that this release does not know', () => planned(streams.fleet, [{ type: 'FromTheFuture', data: {} }])],
    ['an entity that an event cannot be applied to', () => created('b', true)],
  ])('ends the rebuild, with the reason: %s', async (_, event) => {
    await side.append([created('a')]);
    await follow();
    const before = await inUse();
    await append(eventStore, event());
    await expect(rebuild()).rejects.toThrow(/^the log cannot be folded: .*(FromTheFuture|cannot be folded)/);
    expect(await inUse()).toEqual(before);
    expect(await record()).toMatchObject({ layout: { number: 0 }, filling: { number: 1 } });
    expect(await lease()).toEqual([]);
  });
});

describe('the lease of a rebuild', () => {
  const taken = { name: `${groupName}@${release}`, holder: 'another', ttlMs: 60_000, data: null };

  it('makes a second one wait for the first', async () => {
    const { slept } = (sleeps = shortSleeps());
    await side.append([created('a')]);
    await readStore.leases.acquire('read_model_rebuilds', taken);
    let done = false;
    const waiting = rebuild().finally(() => (done = true));
    await turnsWhile(() => slept.length < 3);
    expect([done, new Set(slept)]).toEqual([false, new Set([500])]);
    await readStore.leases.release('read_model_rebuilds', taken.name, taken.holder);
    expect(await waiting).toMatchObject({ kind: 'done' });
  });

  it('is looked at before the layout is pointed to what was filled: one that was lost ends the rebuild', async () => {
    await side.append([created('a')]);
    await follow();
    await spoil('nodes', release);
    const before = await inUse();
    // A long pause, in which another one began.
    const pause = { ...taken, holder: 'another' };
    const losing = rebuild({ onProgress: () => void readStore.leases.take('read_model_rebuilds', pause) });
    await expect(losing).rejects.toThrow(/another rebuild .* has begun meanwhile/);
    expect(await inUse()).toEqual(before);
    expect(await record()).toMatchObject({ layout: { number: 0 } });
    expect((await lease()).map(({ holder }) => holder)).toEqual(['another']);
  });

  it('is looked at before what was replaced is dropped: the rebuild that has it since keeps its own record', async () => {
    await side.append([created('a')]);
    await follow();
    const outcome = await rebuild({
      readersMs: 20_000,
      logger: {
        ...silentLogger,
        info: () => void readStore.leases.take('read_model_rebuilds', taken),
        warn: (_fields, message) => void warnings.push(message),
      },
    });
    expect(outcome).toMatchObject({ kind: 'done', dropped: false });
    expect(await record()).toMatchObject({ layout: { number: 1 }, leftovers: [{ number: 0 }] });
    expect(warnings).toEqual(['the replaced read models could not be dropped yet']);
  });

  it('is waited for as long as a killed rebuild holds it, and half as long again', async () => {
    const { slept } = (sleeps = shortSleeps());
    await readStore.leases.acquire('read_model_rebuilds', { ...taken, ttlMs: 10 * tuning.rebuildLeaseMs });
    let now = 0;
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now);
    const waiting = rebuild();
    const refused = expect(waiting).rejects.toThrow(/another rebuild .* is running/);
    now = 1.5 * tuning.rebuildLeaseMs;
    await new Promise((resolve) => setImmediate(resolve));
    const before = slept.length;
    await turnsWhile(() => slept.length < before + 3);
    now += 1;
    await refused;
    clock.mockRestore();
  });

  it('is not waited for by one that is interrupted', async () => {
    await readStore.leases.acquire('read_model_rebuilds', taken);
    const stop = new AbortController();
    const waiting = expect(rebuild({ signal: stop.signal })).rejects.toThrow(/another rebuild/);
    setImmediate(() => stop.abort());
    await waiting;
  });

  it('is renewed while the rebuild runs, and a failure to renew or to release it does not end the rebuild', async () => {
    const { slept } = (sleeps = shortSleeps());
    await side.append([created('a')]);
    const inner = readStore;
    let renewals = 0;
    let away = false;
    const leases: ReadStore['leases'] = {
      ...inner.leases,
      async renew(kind, claims) {
        renewals += 1;
        expect([kind, claims[0]?.name, claims[0]?.ttlMs]).toEqual([
          'read_model_rebuilds',
          taken.name,
          tuning.rebuildLeaseMs,
        ]);
        if (away) throw new ServiceError('unavailable', 'away');
        return inner.leases.renew(kind, claims);
      },
      release: () => Promise.reject(new ServiceError('unavailable', 'away')),
    };
    await announceReading(inner, 'r', release, [0], 60_000);
    const logger = {
      ...silentLogger,
      // The layout has changed, and the rebuild waits for its readers.
      info: () => void (away = true),
      warn: (_fields: object, message: string) => void warnings.push(message),
    };
    const waiting = rebuild({ readStore: { ...inner, leases }, readersMs: 60_000, logger });
    await turnsWhile(() => !away || warnings.length === 0);
    expect(slept).toContain(tuning.rebuildLeaseMs / 4);
    away = false;
    const before = renewals;
    await turnsWhile(() => renewals === before);
    await stopReading(inner, 'r');
    expect(await waiting).toMatchObject({ kind: 'done', dropped: true });
    expect(warnings).toHaveLength(1);
  });
});

describe('instances that read the old collections', () => {
  it('are waited for, and then everything is dropped', async () => {
    const { slept } = (sleeps = shortSleeps());
    await side.append([created('a')]);
    await follow();
    await announceReading(readStore, 'r', release, [0], 60_000);
    let done = false;
    const waiting = rebuild({ readersMs: 60_000 }).finally(() => (done = true));
    await turnsWhile(() => slept.filter((ms) => ms === tuning.layoutPollMs / 4).length < 3);
    expect([done, (await record()).layout.number]).toEqual([false, 1]);
    // One that is just starting announces within two turns what it reads.
    expect(slept.filter((ms) => ms === 2 * tuning.layoutPollMs)).toHaveLength(1);
    await announceReading(readStore, 'r', release, [1], 60_000);
    expect(await waiting).toMatchObject({ dropped: true });
    expect(await held('nodes', release)).toEqual({});
  });

  it('are not waited for where there are none', async () => {
    const { slept } = (sleeps = shortSleeps());
    await side.append([created('a')]);
    expect(await rebuild({ readersMs: 60_000 })).toMatchObject({ dropped: true });
    expect(slept.filter((ms) => ms >= 2 * tuning.layoutPollMs)).toEqual([]);
  });

  it('keep them when they do not leave in time; the next rebuild drops them', async () => {
    await side.append([created('a')]);
    await follow();
    await announceReading(readStore, 'r', release, [0], 60_000);
    expect(await rebuild({ readersMs: 5 })).toMatchObject({ kind: 'done', dropped: false });
    expect(await held('nodes', release)).toEqual({ a: { count: 1 } });
    const replaced = { number: 0, collections: models.map(({ name }) => ({ name, version: release })) };
    expect(await record()).toMatchObject({ layout: { number: 1 }, leftovers: [replaced] });
    await stopReading(readStore, 'r');
    expect(await rebuild()).toMatchObject({ kind: 'done', dropped: true });
    expect([await held('nodes', release), (await record()).leftovers]).toEqual([{}, []]);
  });

  it('are not waited for by one that is interrupted then', async () => {
    await side.append([created('a')]);
    await follow();
    await announceReading(readStore, 'r', release, [0], 60_000);
    const stop = new AbortController();
    const rebuilding = rebuild({ readersMs: 600_000, signal: stop.signal });
    await eventually(async () => (await record()).layout.number).toBe(1);
    stop.abort();
    expect(await rebuilding).toMatchObject({ kind: 'done', dropped: false });
  });
});

describe('a store that fails while the old collections are dropped', () => {
  const failing = (error: Error): Pick<RebuildOptions, 'readStore'> => ({
    readStore: { ...readStore, drop: () => Promise.reject(error) },
  });

  it('leaves them to the next rebuild when it is away', async () => {
    await side.append([created('a')]);
    expect(await rebuild(failing(new ServiceError('unavailable', 'away')))).toMatchObject({ dropped: false });
    expect(warnings).toHaveLength(1);
    expect((await record()).leftovers).toHaveLength(1);
    expect(await rebuild()).toMatchObject({ dropped: true });
  });

  it('fails the rebuild when the fault is another', async () => {
    await expect(rebuild(failing(new TypeError('a fault')))).rejects.toThrow('a fault');
    expect(await lease()).toEqual([]);
  });
});

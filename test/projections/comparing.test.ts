/**
 * Small read models compared with a fresh fold of the log, on stores in memory: which documents differ and how that is said,
 * which are only behind, and what ends a comparison. With the read models of this release, on real stores and beside a
 * service that runs, this is in `test/maintenance`.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { streams } from '../../src/kernel/event.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { readLayout, versionIn } from '../../src/projections/engine/layout.js';
import type { ReadModel } from '../../src/projections/read-model.js';
import { checkReadModels, type CheckOptions, type CheckReport } from '../../src/projections/rebuild/check.js';
import { rebuildReadModels } from '../../src/projections/rebuild/rebuild.js';
import { tuning } from '../../src/projections/tuning.js';
import type { EventStore } from '../../src/storage/event-store.js';
import type { Collection, Fields, ReadStore } from '../../src/storage/read-store.js';
import { openReadSide, planned, type Planned, type ReadSide } from '../support/read-side.js';
import { shortSleeps, turnsWhile, type ShortSleeps } from '../support/short-sleeps.js';
import { storesInMemory } from '../support/stores-in-memory.js';

const release = 3;
const forever = 2 ** 50;
/** Holds what the last event of each id says. */
const holding = (name: string, what: string): ReadModel => ({
  name,
  keys: ({ type, data }) => {
    if (data['nameless'] === true) throw new Error('no names');
    return type.startsWith(what) ? (data['ids'] as string[]) : [];
  },
  evolve: (_fields, { data }) => ({
    name: String(data['name']),
    bytes: Buffer.from(String(data['name'])),
    kept: 'kept',
    until: String(data['until'] ?? forever).padStart(20, '0'),
  }),
});
const models: readonly ReadModel[] = [
  {
    ...holding('nodes', 'Node'),
    index: { group: 'kept', order: 'until' },
    expired: (now) => ({ groups: ['kept'], below: String(now).padStart(20, '0') }),
  },
  holding('upstreams', 'Upstream'),
];
const set = (ids: readonly string[], name: string, more: object = {}): Planned =>
  planned(streams.fleet, [{ type: 'NodeCreated', data: { ids, name, ...more } }]);
const upstream = (id: string, more: object = {}): Planned =>
  planned(streams.fleet, [{ type: 'UpstreamCreated', data: { ids: [id], name: id, ...more } }]);

let side: ReadSide;
let readStore: ReadStore;
let progress: string[];
let sleeps: ShortSleeps;
beforeEach(async () => {
  sleeps = shortSleeps();
  side = await openReadSide(silentLogger, { inMemory: true });
  ({ readStore } = side.stores);
  progress = [];
});
afterEach(async () => {
  sleeps.restore();
  await side.close();
});

const check = (more: Partial<CheckOptions> = {}): Promise<CheckReport | undefined> =>
  checkReadModels({
    eventStore: side.stores.eventStore,
    readStore,
    scratch: storesInMemory().readStore,
    clock: side.clock,
    logger: silentLogger,
    version: release,
    models,
    signal: new AbortController().signal,
    onProgress: (phase, done, of) => void progress.push(`${phase} ${done}/${of}`),
    ...more,
  });
const follow = async (): Promise<void> => (await side.started({ version: release, models })).close();
const written = async (...log: readonly Planned[]): Promise<void> => {
  await side.append(log);
  await follow();
};
async function collection(name = 'nodes'): Promise<Collection> {
  const version = versionIn(await readLayout(readStore, release), release, name);
  return readStore.collection({ name, version });
}
/** Replaces a document in use by something else; without fields it is missing. */
async function tamper(id: string, change: (fields: Fields) => Fields | undefined, by = 0): Promise<void> {
  const nodes = await collection();
  const { position, fields } = (await nodes.get(id)) ?? { position: 0, fields: {} };
  await nodes.remove([id]);
  const changed = change(fields);
  if (changed !== undefined) await nodes.write([{ id, position: position + by, fields: changed }]);
}
/** How often the comparison waited for documents that are behind. */
const waits = (): number => sleeps.slept.filter((ms) => ms === 2 * tuning.checkpointEveryMs).length;

describe('read models that hold what the log says', () => {
  it('have no difference, each document is compared once, and the progress is told', async () => {
    await written(set(['a'], 'one'), upstream('u'));
    expect(await check()).toEqual({ documents: 2, differences: [], differenceCount: 0, behind: 0 });
    const head = await side.stores.eventStore.headPosition();
    expect(progress[0]).toMatch(new RegExp(`^folding \\d+/${head}$`));
    expect(progress.filter((line) => line.startsWith('comparing'))).toEqual(Array(4).fill('comparing 1/1'));
    expect(progress.filter((line) => line.startsWith('folding')).at(-1)).toBe(`folding ${head}/${head}`);
    expect(waits()).toBe(0);
  });

  it('have none after a rebuild, whose collections are compared', async () => {
    await written(set(['a'], 'one'), upstream('u'));
    const options = { ...side.stores, readStore, version: release, models, logger: silentLogger, onProgress: () => {} };
    await rebuildReadModels({ ...options, only: 'nodes', signal: new AbortController().signal, readersMs: 0 });
    expect(await check()).toMatchObject({ documents: 2, differences: [], behind: 0 });
    await tamper('a', () => undefined);
    expect((await check())?.differences).toHaveLength(1);
  });
});

describe('an index that does not find a document', () => {
  it('is told, though every document is what the log says', async () => {
    await written(set(['a', 'b'], 'one'));
    const losing: ReadStore = {
      ...readStore,
      async collection<F extends Fields>(spec: Parameters<ReadStore['collection']>[0]) {
        const inner = await readStore.collection<F>(spec);
        if (spec.name !== 'nodes') return inner;
        return {
          ...inner,
          find: async (query: Parameters<typeof inner.find>[0]) =>
            (await inner.find(query)).filter(({ id }) => id !== 'b'),
          count: async (range: Parameters<typeof inner.count>[0]) => (await inner.count(range)) - 1,
        };
      },
    };
    expect(await check({ readStore: losing })).toEqual({
      documents: 2,
      differences: ['nodes: the index finds 1 documents of "kept" and counts 1; 2 say that they are in it, such as b'],
      differenceCount: 1,
      behind: 0,
    });
    expect(await check()).toMatchObject({ differences: [], differenceCount: 0 });
  });
});

describe('a difference is told', () => {
  const long = 'x'.repeat(158);
  it.each<[string, (fields: Fields) => Fields | undefined, number, string]>([
    ['in a field', (fields) => ({ ...fields, name: 'two' }), 0, 'position 10; name is "two", the log says "one"'],
    [
      'in several, by their names, also where one is missing or more than there should be',
      ({ name: _, ...fields }) => ({ ...fields, extra: null, until: String(2 ** 49).padStart(20, '0') }),
      0,
      'position 10; extra is null, the log says missing; name is missing, the log says "one"; until is "00000562949953421312", the log says "00001125899906842624"',
    ],
    [
      'in bytes',
      (fields) => ({ ...fields, bytes: new Uint8Array([1, 255]) }),
      0,
      'position 10; bytes is 01ff, the log says 6f6e65',
    ],
    [
      'in a long text',
      (fields) => ({ ...fields, name: long }),
      0,
      `position 10; name is "${long}", the log says "one"`,
    ],
    [
      'in a longer text, which is cut',
      (fields) => ({ ...fields, name: `${long}y` }),
      0,
      `position 10; name is "${long}y…, the log says "one"`,
    ],
    ['in the position alone', (fields) => fields, 7, 'position 17, the log says 10'],
    ['of a document that is missing', () => undefined, 0, 'missing; the log has it since position 10'],
  ])('%s', async (_, change, by, sentence) => {
    await written(set(['a'], 'one'), upstream('u'));
    await tamper('a', change, by);
    expect(await check()).toEqual({
      documents: 2,
      differences: [`nodes a: ${sentence}`],
      differenceCount: 1,
      behind: 0,
    });
    expect(waits()).toBe(0);
  });

  it('of a document that the log does not have', async () => {
    await written(set(['a'], 'one'));
    await tamper('planted', () => ({ name: 'planted' }), 7);
    expect((await check())?.differences).toEqual([
      'nodes planted: shown at position 7, but the log has no such document',
    ]);
  });

  it('of one read model, when only that one is compared', async () => {
    await written(set(['a'], 'one'), upstream('u'));
    await tamper('a', () => undefined);
    expect(await check({ only: 'upstreams' })).toMatchObject({ documents: 1, differenceCount: 0 });
    expect(await check({ only: 'nodes' })).toMatchObject({ documents: 1, differenceCount: 1 });
    await expect(check({ only: 'users' })).rejects.toThrow(/"users".*expected one of nodes, upstreams$/);
  });

  it('of documents behind the first page, on both sides, and counted when there are more than are told', async () => {
    const ids = Array.from({ length: tuning.compareDocuments + 2 }, (_, index) => `n${10_000 + index}`);
    await written(set(ids, 'many'));
    await tamper(ids.at(-1) ?? '', (fields) => ({ ...fields, name: 'x' }));
    await (await collection()).remove([ids.at(-2) ?? '', ...ids.slice(0, tuning.compareShown)]);
    const report = await check();
    expect(report).toMatchObject({ documents: ids.length, differenceCount: tuning.compareShown + 2 });
    expect(report?.differences).toHaveLength(tuning.compareShown);
    expect(progress.filter((line) => line.startsWith('comparing 1002'))).toEqual(['comparing 1002/1002']);
  });

  it('not of documents that are no longer shown, on either side, where their read model forgets any', async () => {
    await written(set(['old', 'gone'], 'old', { until: 5 }), set(['a'], 'one'), upstream('u', { until: 5 }));
    await tamper('old', () => ({ name: 'x', kept: 'kept', until: '5'.padStart(20, '0') }));
    await tamper('gone', () => undefined);
    expect(await check()).toEqual({ documents: 2, differences: [], differenceCount: 0, behind: 0 });
  });
});

describe('documents that the read models in use have not reached', () => {
  it('are behind and not different, after one round of waiting for all of them', async () => {
    await written(set(['a', 'b'], 'one'));
    await side.append([set(['a', 'c'], 'two'), upstream('u')]);
    expect(await check()).toEqual({ documents: 4, differences: [], differenceCount: 0, behind: 3 });
    expect(waits()).toBe(tuning.compareRounds - 1);
  });

  it('are compared again once they are reached', async () => {
    await written(set(['a', 'b'], 'one'));
    await side.append([set(['a'], 'two')]);
    let looks = 0;
    const inner = readStore;
    const late: ReadStore = {
      ...inner,
      async loadCheckpoint(name, version) {
        looks += 1;
        if (looks === 2) await follow();
        return inner.loadCheckpoint(name, version);
      },
    };
    expect(await check({ readStore: late })).toEqual({
      documents: 2,
      differences: [],
      differenceCount: 0,
      behind: 0,
    });
    expect(waits()).toBe(1);
  });

  it('are behind where nothing was ever projected', async () => {
    await side.append([set(['a'], 'one')]);
    expect(await check()).toMatchObject({ documents: 1, differences: [], behind: 1 });
  });

  it('are not those that were never in the log', async () => {
    await written(set(['a'], 'one'));
    await side.append([set(['c'], 'one')]);
    await tamper('planted', () => ({ name: 'x' }), 7);
    expect(await check()).toMatchObject({ differenceCount: 1, behind: 1 });
  });

  it('are not those that are written before their checkpoint', async () => {
    await written(set(['a', 'b'], 'one'));
    await side.append([set(['a', 'b'], 'two')]);
    const two = { name: 'two', bytes: Buffer.from('two'), kept: 'kept', until: String(forever).padStart(20, '0') };
    await tamper('a', () => two, 10);
    await tamper('b', () => ({ ...two, name: 'x' }), 10);
    expect(await check()).toMatchObject({
      differences: ['nodes b: position 20; name is "x", the log says "two"'],
      behind: 0,
    });
  });

  it('are different all the same when the read models say that they have reached them', async () => {
    await written(set(['a'], 'one'), set(['a'], 'two'));
    await tamper('a', (fields) => fields, -10);
    expect(await check()).toMatchObject({ differences: ['nodes a: position 10, the log says 20'], behind: 0 });
  });
});

describe('a comparison', () => {
  it('is ended by its signal: while the log is folded, between pages, and while it waits', async () => {
    await written(set(['a'], 'one'));
    const stopping = (when: (line: string) => boolean) => {
      const stop = new AbortController();
      return check({
        signal: stop.signal,
        onProgress: (phase) => {
          if (when(phase)) stop.abort();
        },
        // Not caught up before the first look.
        eventStore: {
          ...side.stores.eventStore,
          async *subscribe(options) {
            for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
            yield* side.stores.eventStore.subscribe(options);
          },
        },
      });
    };
    expect(await stopping((phase) => phase === 'folding')).toBeUndefined();
    expect(await stopping((phase) => phase === 'comparing')).toBeUndefined();
    expect(await stopping(() => false)).toBeDefined();
    await side.append([set(['a'], 'two')]);
    const stop = new AbortController();
    const waiting = check({ signal: stop.signal });
    await turnsWhile(() => waits() === 0);
    stop.abort();
    expect(await waiting).toBeUndefined();
    expect(waits()).toBeLessThan(tuning.compareRounds - 1);
  });

  it.each([
    ['an event is unknown', planned(streams.fleet, [{ type: 'FromTheFuture', data: {} }]), /FromTheFuture/],
    ['an event names nothing', set(['a'], 'one', { nameless: true }), /ProjectionsStopped/],
  ])('fails with the reason when %s', async (_, event, reason) => {
    await side.append([set(['a'], 'one'), event]);
    const failing = check();
    await expect(failing).rejects.toThrow(/^the log cannot be folded: /);
    await expect(failing).rejects.toThrow(reason);
  });

  it('no longer follows the log when it is done', async () => {
    await written(set(['a'], 'one'));
    const signals: AbortSignal[] = [];
    const { eventStore } = side.stores;
    const watched: EventStore = {
      ...eventStore,
      subscribe(options) {
        signals.push(options.signal);
        return eventStore.subscribe(options);
      },
    };
    await check({ eventStore: watched });
    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
  });

  it('goes on when the scratch store is away for a while', async () => {
    await written(set(['a'], 'one'));
    const scratch = storesInMemory().readStore;
    let fails = 3;
    const shaky: ReadStore = {
      ...scratch,
      async collection(spec) {
        fails -= 1;
        if (fails > 0) throw new Error('away');
        return scratch.collection(spec);
      },
    };
    expect(await check({ scratch: shaky })).toMatchObject({ documents: 1, differences: [] });
  });
});

/** The parts of the read side each by itself: progress, anchors, the fold of one entity, removal of what is over, lists. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { silentLogger } from '../../src/kernel/logger.js';
import type { RecordedCommand, RecordedEvent } from '../../src/kernel/event.js';
import { anchored, AnotherLogError, createAnchors, differenceFrom } from '../../src/projections/engine/anchors.js';
import { removeExpired } from '../../src/projections/engine/expired.js';
import { foldEntity, shortError, workOf } from '../../src/projections/engine/fold.js';
import { placeOf, readLayoutRecord, versionIn, writeLayoutRecord } from '../../src/projections/engine/layout.js';
import { openParking } from '../../src/projections/engine/parked.js';
import { createProgress } from '../../src/projections/engine/progress.js';
import { createStatusBoard } from '../../src/projections/engine/status.js';
import { ProjectionsStopped } from '../../src/projections/engine/stopped.js';
import { createPurge } from '../../src/projections/engine/tombstones.js';
import { listQuery, nameFilter, pageOf, sortFields, sortOf } from '../../src/projections/models/sorted-list.js';
import type { ParkedEntity } from '../../src/projections/port.js';
import type { ReadModel } from '../../src/projections/read-model.js';
import { tuning } from '../../src/projections/tuning.js';
import type { EventStore } from '../../src/storage/event-store.js';
import type { Collection, Fields, GuardedWrite, ReadStore } from '../../src/storage/read-store.js';

const eventOf = (position: number, type = 'E', stream = 'svc-fleet'): RecordedEvent => ({
  id: `id-${stream}-${position}`,
  type,
  data: { id: 'x' },
  stream,
  revision: position - 1,
  position,
  metadata: {
    command: { id: 'c', index: 0, count: 1 },
    actor: { type: 'system', id: 's', name: 's' },
    request_id: 'r',
    occurred_at: '2025-01-01T00:00:00.000Z',
    schema_version: 1,
  },
});
const commandOf = (first: RecordedEvent, ...rest: readonly RecordedEvent[]): RecordedCommand => ({
  stream: first.stream,
  events: [first, ...rest],
});
const facts = 'svc-agents-03';

describe('progress', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
  afterEach(() => void vi.useRealTimers());

  it('is the last position and the last revision of each stream, and never falls', () => {
    const progress = createProgress(5);
    expect([progress.position(), progress.revision('svc-fleet')]).toEqual([5, undefined]);
    progress.applied([commandOf(eventOf(7), eventOf(8)), commandOf(eventOf(9, 'E', facts))]);
    expect([progress.position(), progress.revision('svc-fleet'), progress.revision(facts)]).toEqual([9, 7, 8]);
    progress.applied([commandOf(eventOf(3))]);
    expect([progress.position(), progress.revision('svc-fleet')]).toEqual([9, 7]);
    progress.passed(8);
    expect(progress.position()).toBe(9);
    progress.passed(10);
    expect(progress.position()).toBe(10);
  });

  it('is waited for by position or revision, in bounded time', async () => {
    const progress = createProgress(5);
    expect(await progress.untilPosition(5, 0)).toBe(true);
    expect(progress.awaited()).toBe(false);
    const byPosition = progress.untilPosition(7, 100);
    const byRevision = progress.untilRevision('svc-fleet', 7, 100);
    const first = progress.untilRevision(facts, 0, 100);
    expect(progress.awaited()).toBe(true);
    progress.passed(7);
    expect([await byPosition, progress.awaited()]).toEqual([true, false]);
    progress.applied([commandOf(eventOf(8)), commandOf(eventOf(9, 'E', facts))]);
    expect([await byRevision, await first]).toEqual([true, true]);
    const late = progress.untilPosition(99, 100);
    vi.advanceTimersByTime(100);
    expect([await late, progress.awaited()]).toEqual([false, false]);
    const closing = [progress.untilPosition(99, 100), progress.untilRevision('svc-fleet', 99, 100)];
    progress.close();
    expect(await Promise.all(closing)).toEqual([false, false]);
  });
});

describe('anchors', () => {
  const anchor = (position: number, stream = 'svc-fleet') => ({
    stream,
    revision: position - 1,
    id: `id-${stream}-${position}`,
  });

  it('are the last event and the last one that never expires', () => {
    const anchors = createAnchors();
    expect(anchors.current()).toEqual([]);
    anchors.note([commandOf(eventOf(1, 'E', facts))]);
    expect(anchors.current()).toEqual([anchor(1, facts)]);
    anchors.note([commandOf(eventOf(2), eventOf(3)), commandOf(eventOf(4, 'E', facts))]);
    expect(anchors.current()).toEqual([anchor(3), anchor(4, facts)]);
    anchors.note([commandOf(eventOf(5))]);
    expect(anchors.current()).toEqual([anchor(5)]);
    const later = createAnchors([anchor(3), anchor(4, facts)]);
    expect(later.current()).toEqual([anchor(3), anchor(4, facts)]);
    later.note([commandOf(eventOf(6, 'E', facts))]);
    expect(later.current()).toEqual([anchor(3), anchor(6, facts)]);
  });

  /** A log of these events, by stream and revision. */
  const logOf = (...events: RecordedEvent[]): EventStore =>
    ({
      async *read(stream: string, { from }: { readonly from: number }) {
        const found = events.find((event) => event.stream === stream && event.revision >= from);
        if (found !== undefined) yield found;
      },
      async *subscribe() {
        yield { kind: 'caught_up' };
      },
    }) as unknown as EventStore;

  it('are found in the log that they are from, and differ from another one', async () => {
    expect(
      await differenceFrom(logOf(eventOf(3), eventOf(4, 'E', facts)), [anchor(3), anchor(4, facts)]),
    ).toBeUndefined();
    expect(await differenceFrom(logOf(), [])).toBeUndefined();
    expect(await differenceFrom(logOf(eventOf(3)), [{ ...anchor(3), id: 'other' }])).toEqual({
      certain: true,
      text: 'the read models hold revision 2 of svc-fleet as event other, but it is id-svc-fleet-3 here',
    });
  });

  it('that the log lacks prove nothing certain, and nothing at all where events expire', async () => {
    expect(await differenceFrom(logOf(eventOf(9)), [anchor(3)])).toMatchObject({ certain: false });
    expect(await differenceFrom(logOf(), [anchor(3)])).toMatchObject({ certain: false });
    expect(await differenceFrom(logOf(), [anchor(3, facts)])).toBeUndefined();
    expect(await differenceFrom(logOf(eventOf(9, 'E', facts)), [anchor(3, facts)])).toBeUndefined();
  });

  it('must hold before a subscription begins', async () => {
    const subscribed = async (store: EventStore, ...stored: ReturnType<typeof anchor>[]): Promise<unknown> => {
      const items: unknown[] = [];
      for await (const item of anchored(store, createAnchors(stored)).subscribe({} as never)) items.push(item);
      return items;
    };
    expect(await subscribed(logOf(eventOf(3)), anchor(3))).toEqual([{ kind: 'caught_up' }]);
    await expect(subscribed(logOf(eventOf(3)), { ...anchor(3), id: 'other' })).rejects.toBeInstanceOf(AnotherLogError);
    await expect(subscribed(logOf(), anchor(3))).rejects.toMatchObject({ code: 'unavailable' });
    await expect(subscribed(logOf(), anchor(3))).rejects.not.toBeInstanceOf(AnotherLogError);
  });
});

describe('the fold of one entity', () => {
  /** Counts events; a `D` deletes, an `N` changes nothing, an `X` cannot be applied. */
  const model: ReadModel<{ readonly count: number }> = {
    name: 'counts',
    indexes: [],
    keys: ({ type }) => (type === 'O' ? [] : type === 'B' ? ['a', 'b', 'a'] : ['a']),
    evolve(fields, { type }) {
      if (type === 'X') throw new Error('a bug');
      if (type === 'N') return fields;
      return type === 'D' ? undefined : { count: (fields?.count ?? 0) + 1 };
    },
  };
  const fold = (commands: readonly RecordedCommand[], document?: { position: number; fields: { count: number } }) =>
    foldEntity(
      model as unknown as ReadModel,
      'a',
      document === undefined ? undefined : { id: 'a', ...document },
      workOf(model as unknown as ReadModel, commands).get('a') ?? [],
    );

  it('has one step for each command, with the events that concern the entity', () => {
    const both = commandOf(eventOf(1, 'B'), eventOf(2, 'O'), eventOf(3));
    const work = workOf(model as unknown as ReadModel, [both, commandOf(eventOf(4, 'O')), commandOf(eventOf(5))]);
    const positions = [...work].map(([id, steps]) => [
      id,
      steps.map(({ events }) => events.map(({ position }) => position)),
    ]);
    expect(positions).toEqual([
      ['a', [[1, 3], [5]]],
      ['b', [[1]]],
    ]);
  });

  it('is one write at the position of the last command that changed it', () => {
    expect(fold([commandOf(eventOf(1), eventOf(2)), commandOf(eventOf(3, 'N'))])).toEqual({
      write: { kind: 'put', id: 'a', position: 2, fields: { count: 2 } },
      poisoned: undefined,
    });
    expect(fold([commandOf(eventOf(3, 'N'))])).toEqual({ write: undefined, poisoned: undefined });
    expect(fold([commandOf(eventOf(1)), commandOf(eventOf(2, 'D'))]).write).toEqual({
      kind: 'delete',
      id: 'a',
      position: 2,
    });
  });

  it('skips what its document already reflects', () => {
    const commands = [commandOf(eventOf(1)), commandOf(eventOf(2)), commandOf(eventOf(3))];
    expect(fold(commands, { position: 2, fields: { count: 2 } }).write).toMatchObject({
      position: 3,
      fields: { count: 3 },
    });
    expect(fold(commands, { position: 3, fields: { count: 3 } }).write).toBeUndefined();
    expect(fold([commandOf(eventOf(0))]).write).toMatchObject({ position: 0 });
  });

  it('stays as the command before left it when one cannot be applied', () => {
    const poisonedAt = (position: number): object => ({ position, error: 'Error: a bug' });
    expect(fold([commandOf(eventOf(1)), commandOf(eventOf(2), eventOf(3, 'X')), commandOf(eventOf(4))])).toEqual({
      write: { kind: 'put', id: 'a', position: 1, fields: { count: 1 } },
      poisoned: poisonedAt(3),
    });
    expect(fold([commandOf(eventOf(1, 'X'))])).toEqual({ write: undefined, poisoned: poisonedAt(1) });
    expect(shortError(new Error('x'.repeat(2000)))).toHaveLength(500);
  });
});

/** A collection in memory, as far as the engine uses one. */
function collectionOf(initial: readonly { readonly id: string; readonly fields: Fields }[] = []) {
  const documents = new Map(initial.map(({ id, fields }) => [id, fields]));
  const calls: unknown[] = [];
  const collection = {
    get: async (id: string) => (documents.has(id) ? { id, fields: documents.get(id) } : undefined),
    find: async (query: { readonly limit: number }) => {
      calls.push(query);
      return { items: [...documents].slice(0, query.limit).map(([id, fields]) => ({ id, fields })) };
    },
    set: async (entries: readonly { readonly id: string; readonly fields: Fields }[]) => {
      for (const { id, fields } of entries) documents.set(id, fields);
    },
    write: async (writes: readonly GuardedWrite[]) => {
      calls.push(...writes);
    },
    remove: async (ids: readonly string[]) => {
      for (const id of ids) documents.delete(id);
    },
    purgeTombstones: async (upTo: number) => {
      calls.push(upTo);
      return 2;
    },
  };
  return { collection: collection as unknown as Collection, documents, calls };
}

describe('the purge of tombstones', () => {
  function purge(turns: readonly { readonly checkpoint?: number; readonly leases: readonly unknown[] }[]) {
    const one = collectionOf();
    const other = collectionOf();
    let turn = -1;
    const run = createPurge({
      readStore: {
        leases: {
          list: async (kind: string) => {
            expect(kind).toBe('instances');
            turn += 1;
            return (turns[turn]?.leases ?? []).map((data) => ({ data }));
          },
        },
      } as unknown as ReadStore,
      logger: silentLogger,
      checkpoint: async () => turns[turn]?.checkpoint,
      collections: () => [one.collection, other.collection],
    });
    return { run, calls: one.calls };
  }

  it('removes what every live instance and the checkpoint had passed at the turn before', async () => {
    const { run, calls } = purge([
      { checkpoint: 9, leases: [{ position: 7 }, { position: 8 }] },
      { checkpoint: 6, leases: [{ position: 8 }] },
      { checkpoint: 9, leases: [{ position: 9 }] },
    ]);
    expect([await run(), await run(), await run()]).toEqual([0, 4, 4]);
    expect(calls).toEqual([7, 6]);
  });

  it.each<[string, { readonly checkpoint?: number; readonly leases: readonly unknown[] }]>([
    ['there is no checkpoint', { leases: [{ position: 7 }] }],
    ['no instance is live', { checkpoint: 9, leases: [] }],
    ['an instance does not say how far it is', { checkpoint: 9, leases: [{ position: 7 }, { other: 1 }] }],
    ['an instance says nothing', { checkpoint: 9, leases: [null, { position: 7 }] }],
    ['an instance says what is no number', { checkpoint: 9, leases: [{ position: '7' }] }],
    ['an instance says a text', { checkpoint: 9, leases: ['position'] }],
  ])('removes nothing when %s', async (_name, unknown) => {
    const { run, calls } = purge([unknown, unknown]);
    expect([await run(), await run(), calls]).toEqual([0, 0, []]);
  });
});

describe('what has expired', () => {
  const documents = (count: number) =>
    Array.from({ length: count }, (_, index) => ({ id: `d${index}`, fields: {} as Fields }));
  const model = (name: string, expired?: ReadModel['expired']): ReadModel =>
    ({ name, indexes: [], keys: () => [], evolve: () => undefined, ...(expired && { expired }) }) as ReadModel;

  it('is removed in slices, from the read models whose documents expire', async () => {
    const own = collectionOf(documents(2 * tuning.expiredDocuments));
    const forever = collectionOf(documents(3));
    const removed = await removeExpired({
      models: [
        model('own', (now) => [{ field: 'at', op: 'lte', value: now }] as never),
        model('forever'),
        model('absent', () => []),
      ],
      collections: new Map([
        ['own', own.collection],
        ['forever', forever.collection],
      ]),
      clock: { now: () => 77, monotonic: () => 0 },
    });
    expect([removed, own.documents.size, forever.documents.size]).toEqual([2000, 0, 3]);
    expect(own.calls).toEqual(
      Array(3).fill({ where: [{ field: 'at', op: 'lte', value: 77 }], limit: tuning.expiredDocuments }),
    );
  });
});

describe('parked entities', () => {
  const entity = (id: string): ParkedEntity => ({ projection: 'nodes', id, position: 4, error: 'a bug' });
  const storeOf = (collection: Collection): ReadStore =>
    ({ collection: async () => collection }) as unknown as ReadStore;

  it('are stored before they count, and known after a restart', async () => {
    const { collection, calls } = collectionOf();
    const parking = await openParking(storeOf(collection), 3);
    expect([parking.has('nodes', 'n1'), parking.list()]).toEqual([false, []]);
    await parking.add([entity('n1')]);
    expect([parking.has('nodes', 'n1'), parking.has('nodes', 'n2'), parking.has('chains', 'n1')]).toEqual([
      true,
      false,
      false,
    ]);
    const fields = { projection: 'nodes', entity: 'n1', position: 4, error: 'a bug' };
    expect(calls.slice(1)).toEqual([{ kind: 'put', id: 'nodes/n1', position: 4, fields }]);
    const later = await openParking(storeOf(collectionOf([{ id: 'nodes/n1', fields }]).collection), 3);
    expect(later.list()).toEqual([entity('n1')]);
  });

  it('are not parked when that is not stored, or when they are too many to be single faults', async () => {
    const { collection } = collectionOf();
    const failing = { ...collection, write: () => Promise.reject(new Error('away')) } as unknown as Collection;
    const parking = await openParking(storeOf(failing), 3);
    await expect(parking.add([entity('n1')])).rejects.toThrow('away');
    expect(parking.list()).toEqual([]);
    const full = await openParking(storeOf(collectionOf().collection), 3);
    const many = Array.from({ length: tuning.parkedEntities }, (_, index) => entity(`n${index}`));
    await full.add(many);
    await expect(full.add([entity('one more')])).rejects.toBeInstanceOf(ProjectionsStopped);
    expect(full.list()).toHaveLength(tuning.parkedEntities);
  });
});

describe('the layout', () => {
  it('is that of the release before the first rebuild, and what was written afterwards', async () => {
    const { collection } = collectionOf();
    const store = { collection: async () => collection } as unknown as ReadStore;
    expect(await readLayoutRecord(store, 3)).toEqual({
      layout: { number: 0, places: new Map() },
      filling: undefined,
      leftovers: [],
    });
    const record = {
      layout: { number: 2, places: new Map([['nodes', 30_002]]) },
      filling: { number: 3, only: 'nodes' },
      leftovers: [{ number: 1, collections: [{ name: 'nodes', version: 30_001 }] }],
    };
    await writeLayoutRecord(store, 3, record);
    expect(await readLayoutRecord(store, 3)).toEqual(record);
    expect((await readLayoutRecord(store, 4)).layout.number).toBe(0);
    await writeLayoutRecord(store, 3, { ...record, filling: undefined });
    expect((await readLayoutRecord(store, 3)).filling).toBeUndefined();
    expect([versionIn(record.layout, 3, 'nodes'), versionIn(record.layout, 3, 'chains')]).toEqual([30_002, 3]);
  });

  it('has a place of its own for each rebuild of a release', () => {
    expect([placeOf(3, 0), placeOf(3, 1), placeOf(3, 9_999), placeOf(4, 1)]).toEqual([3, 30_001, 39_999, 40_001]);
  });
});

describe('the status', () => {
  it('is told when it changes, not when only the position does', () => {
    let position = 1;
    const parked: ParkedEntity[] = [];
    const board = createStatusBoard(
      () => position,
      () => parked,
      silentLogger,
    );
    const told: unknown[] = [];
    const stop = board.onChange((status) => told.push(status));
    expect(board.current()).toEqual({ caughtUp: false, unknownEvent: null, lastError: null, position: 1, parked: [] });
    board.set({ caughtUp: true });
    position = 2;
    board.set({ caughtUp: true });
    expect(told).toEqual([{ caughtUp: true, unknownEvent: null, lastError: null, position: 1, parked: [] }]);
    parked.push({ projection: 'nodes', id: 'n1', position: 2, error: 'x' });
    board.set({});
    board.set({ lastError: 'x' });
    stop();
    board.set({ lastError: null });
    expect(told).toHaveLength(3);
    expect(told[2]).toEqual({ caughtUp: true, unknownEvent: null, lastError: 'x', position: 2, parked });
  });
});

describe('a list', () => {
  it.each([
    ['name', 'name_key', 'asc'],
    ['-name', 'name_key', 'desc'],
    ['created_at', 'created_at', 'asc'],
    ['-created_at', 'created_at', 'desc'],
    ['updated_at', 'updated_at', 'asc'],
    ['-updated_at', 'updated_at', 'desc'],
  ] as const)('is sorted by %s', (sort, field, direction) => {
    expect(sortOf(sort)).toEqual([{ field, direction }]);
  });

  it('is searched by a part of the name without regard to case, and skips the pages before', () => {
    expect([nameFilter(undefined), nameFilter('')]).toEqual([[], []]);
    const where = [{ field: 'name_key', op: 'contains', value: 'web' }];
    expect(nameFilter('WEB')).toEqual(where);
    expect(listQuery({ q: 'Web', sort: 'name', page: 3, pageSize: 20 } as never, [{ field: 'a' } as never])).toEqual({
      where: [{ field: 'a' }, ...where],
      sort: [{ field: 'name_key', direction: 'asc' }],
      skip: 40,
      limit: 20,
    });
    expect(listQuery({ sort: 'name', page: 1, pageSize: 5 } as never).where).toEqual([]);
    expect(pageOf({ page: 1, pageSize: 50 })).toEqual({ skip: 0, limit: 50 });
    const meta = { name: 'Web', created_at: 'c', updated_at: 'u' };
    expect(sortFields(meta as never)).toEqual({ name_key: 'web', created_at: 'c', updated_at: 'u' });
  });
});

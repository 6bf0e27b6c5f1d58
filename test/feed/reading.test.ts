/**
 * Reading of the feed on real stores: from the window and from the log behind it alike, and what becomes of cursors when the log is
 * another one. Cites `docs/contract/automation.md#event-feed`.
 */
import { afterEach, expect, test } from 'vitest';
import { createCursors } from '../../src/feed/cursor.js';
import { createFeed, type FeedDeps } from '../../src/feed/feed.js';
import { fleetNames } from '../../src/feed/names.js';
import type { Feed, FeedItem, FeedPlace } from '../../src/feed/port.js';
import { streams, type RecordedCommand, type StoredEvent } from '../../src/kernel/event.js';
import { ServiceError } from '../../src/kernel/errors.js';
import { limits } from '../../src/kernel/limits.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { createClosers } from '../../src/kernel/closers.js';
import type { EventStore } from '../../src/storage/event-store.js';
import { commandsAfter } from '../../src/storage/follow.js';
import { createDice } from '../support/hostile.js';
import { eventually } from '../support/eventually.js';
import {
  configApplied,
  fleetAfter,
  openReadSide,
  planned,
  randomLog,
  sessionOpened,
  type Planned,
  type ReadSide,
} from '../support/read-side.js';

const closers = createClosers(silentLogger);
afterEach(() => closers.closeAll());

async function open(log: readonly Planned[]): Promise<ReadSide> {
  const side = await openReadSide(silentLogger, { inMemory: true });
  closers.add('read side', side);
  await side.append(log);
  return side;
}

async function feedOf(side: ReadSide, more: Partial<FeedDeps> = {}): Promise<Feed> {
  const projections = await side.started();
  const { eventStore } = side.stores;
  const feed = createFeed({
    eventStore,
    projections,
    committed: () => [],
    installationId: 'the same',
    answered: () => 0,
    clock: side.clock,
    logger: silentLogger,
    ...more,
  });
  closers.add('feed', feed);
  await eventually(() => feed.end().live).toBe(true);
  return feed;
}

/** Everything behind a place, in pieces of any size. */
async function readOn(feed: Feed, from: FeedPlace, maxItems: () => number): Promise<readonly FeedItem[]> {
  const items: FeedItem[] = [];
  for (let [place, pieces] = [from, 0]; ; pieces += 1) {
    expect(pieces).toBeLessThan(1_000);
    const batch = await feed.read(place, { maxItems: maxItems() });
    items.push(...batch.items);
    if (batch.caughtUp) return items;
    place = batch.place;
  }
}

const refreshed = (): Planned => planned(streams.fleet, [{ type: 'NodeConfigRefreshed', data: { node_id: 'n' } }]);
const textOf = (items: readonly FeedItem[]): readonly string[] =>
  items.map(({ cursor, type, at, json }) => [cursor, type, at, json].join());

test('however much of the log the window holds, every reader gets the same, from the start and from each cursor', async () => {
  for (const seed of [1, 2, 3]) {
    const log = randomLog(seed, 60);
    const dice = createDice(seed);
    const half = Math.floor(log.length / 2);
    const side = await open(log.slice(0, half));
    const narrow = await feedOf(side, { windowBounds: { commands: 3, bytes: 1e9 } });
    const wide = await feedOf(side);
    await side.append(log.slice(half));
    const end = await side.stores.eventStore.headPosition();
    const late = await feedOf(side);
    for (const feed of [narrow, wide, late]) await eventually(() => feed.end().place.position).toBe(end);
    const all = await readOn(narrow, await narrow.resolve('start'), () => 1 + dice.below(5));
    expect(all.length).toBeGreaterThan(20);
    expect(all.map(({ position }) => position)).toEqual(all.map(({ position }) => position).toSorted((a, b) => a - b));
    for (const feed of [wide, late]) {
      expect(textOf(await readOn(feed, await feed.resolve('start'), () => 1 + dice.below(50)))).toEqual(textOf(all));
    }
    for (const [index, { cursor }] of all.entries()) {
      const feed = [narrow, wide, late][index % 3]!;
      expect(textOf(await readOn(feed, await feed.resolve(cursor), () => 100))).toEqual(textOf(all.slice(index + 1)));
    }
    await closers.closeAll();
  }
});

test('a command with a step of a rollout gives two items, each with a cursor, from the window and from the log alike', async () => {
  const id = '00000000-0000-4000-8000-000000000001';
  const policy = { id, name: 'careful', waves: [{ nodes: 1 }], bake_secs: 60, apply_timeout_secs: 120, max_failed: 0 };
  const started = {
    type: 'RolloutStarted',
    data: {
      rollout_id: id,
      action: 'connectivity.update',
      resource: { type: 'connectivity', id: 'connectivity', name: 'connectivity' },
      policy: { ...policy, max_lost: 0, on_failure: 'halt', confirm_secs: null },
      nodes: '',
      units: [],
      waves: [],
      online: '',
      failing: [],
    },
  };
  const changes = { metrics_interval_secs: { from: 60, to: 90 } };
  const stepped = (step: string, was: string, state: string) => ({
    type: 'RolloutStepped',
    data: { rollout_id: id, entry_id: id, policy: 'careful', step, was, state, wave: 1, reason: null },
  });
  const person = { type: 'user', id: 'anna', name: 'anna' } as const;
  const service = { type: 'system', id: 'service', name: 'service' } as const;
  const side = await open([
    refreshed(),
    planned(streams.fleet, [{ type: 'ConnectivityUpdated', data: { changes } }, started]),
    planned(streams.fleet, [stepped('pause', 'running', 'paused')], { actor: person }),
    planned(streams.fleet, [stepped('converge', 'running', 'baking')], { actor: service }),
    planned(streams.fleet, [{ type: 'RolloutClockSet', data: { rollout_id: id, ran_ms: 1, runs: true } }], {
      actor: service,
    }),
    planned(streams.fleet, [
      { type: 'ConnectivityUpdated', data: { changes } },
      stepped('end', 'baking', 'cancelled'),
      started,
    ]),
  ]);
  const wide = await feedOf(side);
  await side.append([refreshed()]);
  const narrow = await feedOf(side, { windowBounds: { commands: 1, bytes: 1e9 } });
  for (const feed of [narrow, wide])
    await eventually(() => feed.end().place.position).toBe(await side.stores.eventStore.headPosition());
  for (const feed of [narrow, wide]) {
    const all = await readOn(feed, await feed.resolve('start'), () => 1);
    expect(
      all.map(({ type, json }) => (type === 'rollout' ? JSON.parse(json).state : JSON.parse(json).action)),
    ).toEqual(
      'node.refresh connectivity.update running rollout.pause paused baking connectivity.update cancelled running node.refresh'.split(
        ' ',
      ),
    );
    expect(new Set(all.map(({ cursor }) => cursor)).size).toBe(all.length);
    expect(JSON.parse(all[4]!.json)).toEqual({
      id,
      entry_id: id,
      policy: 'careful',
      was: 'running',
      state: 'paused',
      wave: 1,
      reason: null,
    });
    for (const [index, { cursor }] of all.entries()) {
      expect(textOf(await readOn(feed, await feed.resolve(cursor), () => 100))).toEqual(textOf(all.slice(index + 1)));
      expect(await feed.resolveMoved(cursor)).toEqual(await feed.resolve(cursor));
    }
    const steps = await feed.read(await feed.resolve('start'), {
      maxItems: 2,
      select: ({ type }) => type === 'rollout',
    });
    expect(steps.items.map(({ cursor }) => cursor)).toEqual([all[2]!.cursor, all[4]!.cursor]);
  }
});

test('a cursor beyond the end, or at which another event stands, is refused after a restore', async () => {
  const before = [refreshed(), refreshed()];
  const side = await open([...before, refreshed(), refreshed()]);
  const feed = await feedOf(side);
  const [, kept, , newest] = await readOn(feed, await feed.resolve('start'), () => 100);
  const shorter = await feedOf(await open(before));
  const other = await feedOf(await open([...before, refreshed(), refreshed(), refreshed()]));
  expect(await shorter.resolve(kept!.cursor)).toEqual({ position: kept!.position, cursor: kept!.cursor });
  for (const restored of [shorter, other]) {
    await expect(restored.resolve(newest!.cursor)).rejects.toMatchObject({ code: 'conflict' });
  }
});

test('a cursor inside a command is malformed: the feed gives none', async () => {
  const one = { type: 'NodeConfigRefreshed', data: { node_id: 'n' } };
  const side = await open([planned(streams.fleet, [one, one])]);
  const feed = await feedOf(side);
  const places: StoredEvent[] = [];
  const all = { direction: 'forward', from: 0, maxCount: 10 } as const;
  for await (const event of side.stores.eventStore.read(streams.fleet, all)) places.push(event);
  const [first, last] = places.slice(-2).map((event) => createCursors('the same').of(event));
  await expect(feed.resolve(first!)).rejects.toMatchObject({ code: 'invalid_request' });
  expect((await feed.resolve(last!)).cursor).toBe(last);
});

test('where an expired fact stood, reading goes on behind it', async () => {
  const side = await open([sessionOpened('n'), configApplied('n', 1), configApplied('n', 2), refreshed()]);
  const feed = await feedOf(side);
  const [opened] = await readOn(feed, await feed.resolve('start'), () => 100);
  const trimmed = withoutExpired(
    side.stores.eventStore,
    ({ stream, revision }) => stream !== streams.fleet && revision < 2,
  );
  const later = await feedOf(side, { eventStore: trimmed });
  const items = await readOn(later, await later.resolve(opened!.cursor), () => 100);
  expect(items.map(({ type }) => type)).toEqual(['apply', 'command']);
});

test('when all behind a cursor has expired in the log, reading goes on in the window', async () => {
  const side = await open([refreshed(), sessionOpened('n')]);
  let expired = false;
  const { eventStore } = side.stores;
  const store = withoutExpired(
    eventStore,
    ({ stream, revision }) => expired && stream !== streams.fleet && revision < 3,
  );
  const feed = await feedOf(side, { eventStore: store, windowBounds: { commands: 1, bytes: 1e9 } });
  const [first] = await readOn(feed, await feed.resolve('start'), () => 100);
  await side.append([configApplied('n', 1), configApplied('n', 2), configApplied('n', 3)]);
  const end = await eventStore.headPosition();
  await eventually(() => feed.end().place.position).toBe(end);
  expired = true;
  const items = await readOn(feed, await feed.resolve(first!.cursor), () => 100);
  expect(items.map(({ position }) => position)).toEqual([end]);
});

/** A store in which some events have expired. */
function withoutExpired(store: EventStore, isExpired: (event: StoredEvent) => boolean): EventStore {
  return {
    ...store,
    async *read(stream, options) {
      let left = options.maxCount;
      for await (const event of store.read(stream, { ...options, maxCount: 100 })) {
        if (isExpired(event)) continue;
        if ((left -= 1) < 0) return;
        yield event;
      }
    },
    async *subscribe(options) {
      for await (const item of store.subscribe(options)) {
        const kept = item.kind === 'events' ? item.events.filter((event) => !isExpired(event)) : [];
        if (item.kind !== 'events') yield item;
        else if (kept.length > 0) yield { kind: 'events', events: kept };
      }
    },
  };
}

test('how far a place is behind is the age of the first command behind it', async () => {
  const side = await open([refreshed()]);
  const feed = await feedOf(side);
  const place = await feed.resolve('now');
  expect(await feed.lag(place)).toEqual({ seconds: 0, caught_up: true });
  const next = refreshed();
  await side.append([next, refreshed()]);
  await feed.wait(place, 10_000);
  side.clock.advance(Date.parse(next.at) + 7_000 - side.clock.now());
  expect(await feed.lag(place)).toEqual({ seconds: 7, caught_up: false });
});

test('a wait ends when something comes, when its time is over, and when it is called off', async () => {
  const side = await open([refreshed()]);
  const feed = await feedOf(side);
  const place = await feed.resolve('now');
  await feed.wait(place, 1);
  const stop = new AbortController();
  const waiting = feed.wait(place, 60_000, stop.signal);
  stop.abort();
  await waiting;
  const coming = feed.wait(place, 60_000);
  await side.append([refreshed()]);
  await coming;
  expect((await feed.read(place, { maxItems: 10 })).items).toHaveLength(1);
});

test('what happens now is told with its names while the read store is away: those of what was there before, and of what was deleted', async () => {
  const created = randomLog(7, 60);
  const side = await open(created);
  const folded: RecordedCommand[] = [];
  for await (const commands of commandsAfter(side.stores.eventStore, streams.fleet, -1)) folded.push(...commands);
  const fleet = fleetAfter(folded);
  const nodes = [...fleet.tables.node.values()];
  expect(nodes.length).toBeGreaterThan(1);
  const away = async (): Promise<never> => {
    throw new ServiceError('unavailable', 'the read store is away');
  };
  // What is written between the two is not in the fold.
  const renamed = {
    type: 'NodeUpdated',
    data: { node_id: nodes[0]!.id, changes: { name: { from: 'x', to: 'anew' } } },
  };
  await side.append([planned(streams.fleet, [renamed])]);
  const feed = await feedOf(side, {
    projections: { names: away, reached: away },
    committed: () => [fleetNames(fleet)],
  });
  const place = await feed.resolve('now');
  const of = (id: string, type: string) => planned(streams.fleet, [{ type, data: { node_id: id } }]);
  await side.append(nodes.flatMap(({ id }) => [of(id, 'NodeConfigRefreshed'), of(id, 'NodeDeleted')]));
  await eventually(() => feed.end().place.position).toBe(await side.stores.eventStore.headPosition());
  const { items } = await feed.read(place, { maxItems: 500 });
  const names = nodes.map(({ name }, index) => (index === 0 ? 'anew' : name));
  expect(items.map(({ json }) => JSON.parse(json).resource.name)).toEqual(names.flatMap((name) => [name, name]));
});

test('a piece ends at its bytes and at the events that it looks at, and has one item at least', async () => {
  const text = 'x'.repeat(100_000);
  const large = () =>
    planned(streams.fleet, [
      { type: 'NodeUpdated', data: { node_id: 'n', changes: { description: { from: null, to: text } } } },
    ]);
  const many = () =>
    planned(
      streams.fleet,
      Array.from({ length: 900 }, () => ({ type: 'NodeConfigRefreshed', data: { node_id: 'n' } })),
    );
  const side = await open([...Array.from({ length: 60 }, large), ...Array.from({ length: 20 }, many)]);
  const feed = await feedOf(side);
  const start = await feed.resolve('start');
  const first = await feed.read(start, { maxItems: 500 });
  const bytesOf = (items: readonly FeedItem[]): number => items.reduce((sum, { json }) => sum + json.length, 0);
  expect(first.items.length).toBeGreaterThan(35);
  expect(bytesOf(first.items)).toBeLessThanOrEqual(limits.feed.pieceBytes);
  expect((await feed.read(start, { maxItems: 500, maxBytes: 1 })).items).toHaveLength(1);
  expect((await feed.read(start, { maxItems: 500, maxBytes: 250_000 })).items).toHaveLength(2);
  // What a filter leaves out counts too.
  const looks: number[] = [];
  for (let place = start; ;) {
    expect(looks.length).toBeLessThan(100);
    const batch = await feed.read(place, { maxItems: 500, select: () => false });
    looks.push(batch.looked);
    expect(batch.items).toEqual([]);
    if (batch.caughtUp) break;
    place = batch.place;
  }
  expect(looks.reduce((sum, looked) => sum + looked)).toBe(60 + 20 * 900);
  expect(Math.max(...looks)).toBeLessThan(limits.feed.pieceEvents + 900);
  expect(looks.length).toBeGreaterThanOrEqual(3);
  expect(looks[0]).toBeLessThan(60);
});

test('a reader that has left while it waited keeps its place', async () => {
  const side = await open([refreshed(), refreshed(), refreshed()]);
  const feed = await feedOf(side, { windowBounds: { commands: 1, bytes: 1e9 } });
  const start = await feed.resolve('start');
  expect(await feed.read(start, { maxItems: 9, signal: AbortSignal.abort() })).toMatchObject({
    items: [],
    place: start,
  });
});

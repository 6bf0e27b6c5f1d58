/** What the embedded stores promise beyond the ports: bounded disk use, known outcomes, a clean shutdown. */
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Clock } from '../../src/kernel/clock.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { commitBytes, createSpaceReserve } from '../../src/storage/embedded/data-file.js';
import { openEmbedded, type EmbeddedStores } from '../../src/storage/embedded/open-embedded.js';
import type { LogItem } from '../../src/storage/event-store.js';
import { collectLog, commandOf, isDrop, readAll } from './contract/appending.js';
import { temporaryFolder } from './contract/temporary-folder.js';

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let stores: EmbeddedStores;
const hour = 3_600_000;
const day = 24 * hour;
/** Real time, and what tests add to it. `ahead` is the fault of the wall clock. */
let [passed, ahead] = [0, 0];
const clock: Clock = {
  now: () => 1_800_000_000_000 + passed + ahead,
  monotonic: () => performance.now() + passed,
};
const open = (): Promise<EmbeddedStores> => openEmbedded({ dataDir: folder.path, clock, logger: silentLogger });

beforeEach(async () => {
  [passed, ahead] = [0, 0];
  folder = await temporaryFolder();
  stores = await open();
});
afterEach(async () => {
  await stores.close();
  await folder.remove();
});

/** The streams of the tests that are followed. */
const names = ['svc-a', 'svc-b', 'svc-0', 'svc-1', 'svc-2', 'svc-3'];

describe('a subscription at the end of the log', () => {
  it('is handed the same events as one that reads them from the disk, whatever their data', async () => {
    const { eventStore } = stores;
    const odd = [
      { left: undefined },
      { zero: -0 },
      { list: [undefined] },
      { many: 'é\ud800'.repeat(40) },
      { deep: { a: [1, null] } },
    ];
    const live = collectLog(eventStore, names, 'start', (seen) => seen.length === 60);
    for (let index = 0; index < 20; index += 1) {
      const [first, ...rest] = commandOf(3);
      const data = odd[index % odd.length] as unknown as NonNullable<typeof first>['data'];
      await eventStore.append(index % 2 === 0 ? 'svc-a' : 'svc-b', 'any', [{ ...first!, data }, ...rest]);
      await eventStore.append('other', 'any', commandOf(2));
    }
    const { events } = await live;
    await stores.close();
    stores = await open();
    const stored = await collectLog(stores.eventStore, names, 'start', (_, item) => item.kind === 'caught_up');
    // Strictly: a member that is undefined is not one that is missing.
    expect(events).toStrictEqual(stored.events);
  });
});

it('gives the event loop a turn between the pages of a walk through a collection', async () => {
  const collection = await stores.readStore.collection({ name: 'walked', version: 1 });
  const ids = Array.from({ length: 2500 }, (_, index) => `id ${10_000 + index}`);
  const turnsDuring = async (walk: () => Promise<unknown>): Promise<number> => {
    let turns = 0;
    const count = (): NodeJS.Immediate => setImmediate(() => ((turns += 1), (next = count())));
    let next = count();
    await walk();
    clearImmediate(next);
    return turns;
  };
  await collection.set(ids.map((id) => ({ id, fields: {} })));
  const walk = async (): Promise<void> => {
    for (let after: string | undefined, more = true; more;) {
      const page = await collection.list(after, 500);
      after = page.at(-1)?.id;
      more = page.length === 500;
    }
  };
  expect(await turnsDuring(walk)).toBeGreaterThanOrEqual(5);
});

describe('retention', () => {
  it('removes expired appends whole but keeps the last one, and subscriptions continue across the gap', async () => {
    const { eventStore } = stores;
    await eventStore.setRetention('svc-a', { maxAgeSeconds: 3600 });
    for (let index = 0; index < 130; index += 1) {
      await eventStore.append('svc-a', 'any', commandOf(3));
      await eventStore.append('svc-b', 'any', commandOf(1));
      passed += 60_000;
    }
    const before = await collectLog(eventStore, names, 'start', (_, item) => item.kind === 'caught_up');
    expect(before.events).toHaveLength(130 * 4);
    const visible = await readAll(eventStore, 'svc-a');
    expect(visible).toHaveLength(61 * 3);

    expect(await eventStore.trim()).toBe(69);
    expect(await eventStore.trim()).toBe(0);
    expect(await readAll(eventStore, 'svc-a')).toEqual(visible);
    expect(await readAll(eventStore, 'svc-b')).toHaveLength(130);
    const after = await collectLog(eventStore, names, 'start', (_, item) => item.kind === 'caught_up');
    const remaining = new Set([
      ...visible.map(({ id }) => id),
      ...(await readAll(eventStore, 'svc-b')).map(({ id }) => id),
    ]);
    expect(after.events).toEqual(before.events.filter(({ id }) => remaining.has(id)));

    passed += 90 * day;
    await eventStore.append('svc-b', 'any', commandOf(1));
    expect(await eventStore.trim()).toBe(60);
    expect(await readAll(eventStore, 'svc-a')).toEqual([]);
    expect(await eventStore.append('svc-a', 389, commandOf(1))).toMatchObject({ kind: 'appended', revision: 390 });
    for (const point of [0, 5, 200, 516]) {
      const rest = await collectLog(eventStore, ['svc-a'], { commit: point, prepare: point }, (all) => all.length >= 4);
      expect(rest.events.map(({ revision }) => revision)).toEqual([387, 388, 389, 390]);
    }
  });

  it('removes more appends than one run may, over several runs, by count', async () => {
    const { eventStore } = stores;
    await Promise.all(Array.from({ length: 1300 }, () => eventStore.append('svc-a', 'any', commandOf(1))));
    await eventStore.setRetention('svc-a', { maxCount: 10 });
    let removed = 0;
    for (let turn = 0; turn < 5; turn += 1) removed += await eventStore.trim();
    expect(removed).toBe(1290);
    expect((await readAll(eventStore, 'svc-a')).map(({ revision }) => revision)).toEqual(
      Array.from({ length: 10 }, (_, index) => 1290 + index),
    );
  });
});

describe('expiry on a wrong clock', () => {
  /** A fact a day, for 80 days. */
  async function factsOf80Days(): Promise<void> {
    await stores.eventStore.setRetention('svc-a', { maxAgeSeconds: (90 * day) / 1000 });
    for (let fact = 0; fact < 80; fact += 1) {
      await stores.eventStore.append('svc-a', 'any', commandOf(1));
      passed += day;
    }
  }
  const facts = async (): Promise<number> => (await readAll(stores.eventStore, 'svc-a')).length;
  async function reopen(): Promise<void> {
    await stores.close();
    stores = await open();
  }

  it('a year ahead, for a day and over restarts, costs a day or two of facts and not all of them', async () => {
    await factsOf80Days();
    ahead = 365 * day;
    expect(await stores.eventStore.trim()).toBe(0);
    for (let fact = 0; fact < 12; fact += 1) {
      await stores.eventStore.append('svc-a', 'any', commandOf(1));
      passed += 2 * hour;
      if (fact % 4 === 3) await reopen();
      await stores.eventStore.trim();
    }
    expect(await facts()).toBe(92);
    ahead = 0;
    await stores.eventStore.append('svc-a', 'any', commandOf(1));
    expect(await facts()).toBe(93);
    passed += 20 * day;
    await stores.eventStore.append('svc-a', 'any', commandOf(1));
    // From today's first append on: 94 less the 11 that are older than 90 days.
    await stores.eventStore.trim();
    expect(await facts()).toBe(83);
  });

  it('a year ahead from the start, then right, removes nothing early', async () => {
    await stores.close();
    await folder.remove();
    folder = await temporaryFolder();
    ahead = 365 * day;
    stores = await open();
    await stores.eventStore.append('svc-b', 'any', commandOf(1));
    await stores.eventStore.trim();
    ahead = 0;
    await reopen();
    await factsOf80Days();
    expect(await stores.eventStore.trim()).toBe(0);
    expect(await facts()).toBe(80);
  });

  it('is not taken for one when the service was down for long: what has expired goes, only later', async () => {
    await factsOf80Days();
    await stores.close();
    // The machine was off, which no process has measured.
    ahead = 60 * day;
    stores = await open();
    await stores.eventStore.append('svc-a', 'any', commandOf(1));
    expect(await stores.eventStore.trim()).toBe(0);
    for (let waited = 0; waited < 60; waited += 1) {
      passed += day;
      await stores.eventStore.append('svc-b', 'any', commandOf(1));
      await stores.eventStore.trim();
    }
    expect(await facts()).toBe(1);
  });

  it('is judged by the log where nothing is written: the newest event says what time it is', async () => {
    await factsOf80Days();
    passed += 60 * day;
    expect(await stores.eventStore.trim()).toBe(0);
    await stores.eventStore.append('svc-b', 'any', commandOf(1));
    expect(await stores.eventStore.trim()).toBe(50);
  });
});

describe('the embedded log', () => {
  it('recognises a repeat with expected revision `any` while it remembers the append', async () => {
    const { eventStore } = stores;
    const events = commandOf(2);
    const first = await eventStore.append('svc-a', 'any', events);
    await eventStore.append('svc-a', 'any', commandOf(1));
    expect(await eventStore.append('svc-a', 'any', events)).toEqual(first);
    const [written, unwritten] = [events[0]!, commandOf(1)[0]!];
    expect(await eventStore.append('svc-a', 'any', [written, unwritten])).toEqual({ kind: 'conflict', actual: 2 });
    // The same ids in another stream are another append.
    expect(await eventStore.append('svc-b', 'any', events)).toMatchObject({ kind: 'appended', revision: 1 });
  });

  it('numbers positions one by one and returns each', async () => {
    const { eventStore } = stores;
    const outcomes = await Promise.all(
      Array.from({ length: 40 }, (_, index) =>
        eventStore.append(`svc-${index % 4}`, 'any', commandOf(1 + (index % 3))),
      ),
    );
    const positions = outcomes.map((outcome) => (outcome.kind === 'appended' ? outcome.position : -1));
    const { events } = await collectLog(eventStore, names, 'start', (_, item) => item.kind === 'caught_up');
    expect(events.map(({ position }) => position)).toEqual(events.map((_, index) => index + 1));
    for (const position of positions) expect(events.some((event) => event.position === position)).toBe(true);
    expect(await eventStore.headPosition()).toBe(events.length);
  });

  it('reports its progress to a subscription of one prefix from time to time', async () => {
    const { eventStore } = stores;
    await eventStore.append('svc-a', 'any', commandOf(1));
    for (let index = 0; index < 30; index += 1) await eventStore.append('other', 'any', commandOf(50));
    const items: LogItem[] = [];
    await collectLog(eventStore, names, 'start', (_, item) => {
      items.push(item);
      return item.kind === 'caught_up';
    });
    expect(items.map(({ kind }) => kind)).toEqual(['events', 'checkpoint', 'caught_up']);
    expect(items[1]).toEqual({ kind: 'checkpoint', point: { commit: 1501, prepare: 1501 } });
  });

  it('never drops a slow subscriber', async () => {
    const { eventStore } = stores;
    const stop = new AbortController();
    let seen = 0;
    for await (const item of eventStore.subscribe({ streams: names, after: 'start', signal: stop.signal })) {
      if (item.kind === 'caught_up') {
        for (let index = 0; index < 40; index += 1) await eventStore.append('svc-a', 'any', commandOf(100));
      }
      if (item.kind === 'events') seen += item.events.length;
      if (seen >= 4000) stop.abort();
    }
    expect(seen).toBe(4000);
  });
});

describe('closing', () => {
  it('writes what is queued, refuses new calls, and ends subscriptions with an error', async () => {
    const { eventStore, readStore } = stores;
    const nodes = await readStore.collection({ name: 'nodes', version: 1 });
    const stop = new AbortController();
    const following = (async () => {
      for await (const item of eventStore.subscribe({ streams: names, after: 'start', signal: stop.signal })) void item;
    })();
    const refused = expect(following).rejects.toSatisfy(isDrop);
    const waiting = Array.from({ length: 50 }, (_, index) => eventStore.append(`svc-${index}`, 'any', commandOf(1)));
    const written = nodes.write([{ id: 'a', position: 1, fields: {} }]);
    await stores.close();
    for (const outcome of await Promise.all(waiting)) expect(outcome.kind).toBe('appended');
    await written;
    await refused;
    expect(await eventStore.append('svc-a', 'any', commandOf(1))).toMatchObject({ kind: 'unavailable' });
    await expect(readAll(eventStore, 'svc-a')).rejects.toSatisfy(isDrop);
    await expect(eventStore.ping()).rejects.toSatisfy(isDrop);
    await expect(readStore.ping()).rejects.toSatisfy(isDrop);
    await expect(nodes.get('a')).rejects.toSatisfy(isDrop);
    await expect(nodes.write([{ id: 'b', position: 2, fields: {} }])).rejects.toSatisfy(isDrop);
    stores = await open();
    expect(await stores.eventStore.headPosition()).toBe(50);
    expect(await (await stores.readStore.collection(nodes.spec)).get('a')).toMatchObject({ position: 1 });
  });
});

describe('a group of writes', () => {
  it("succeeds although one of them is its caller's fault", async () => {
    const nodes = await stores.readStore.collection({ name: 'nodes', version: 1, index: { group: 'in', order: 'at' } });
    const results = await Promise.allSettled(
      Array.from({ length: 20 }, (_, n) =>
        nodes.write([{ id: n === 7 ? '' : `id-${n}`, position: 1, fields: { in: 'x', at: `${n}` } }]),
      ),
    );
    expect(results.filter(({ status }) => status === 'rejected')).toHaveLength(1);
    expect(results[7]).toMatchObject({ reason: expect.any(RangeError) });
    expect(await nodes.count({ groups: ['x'] })).toBe(19);
  });
});

describe('the reserve of space', () => {
  it('only writes behind the end of the file, and as much as a commit needs', async () => {
    const path = await mkdtemp(join(tmpdir(), 'reserve-'));
    const file = join(path, 'file');
    await writeFile(file, Buffer.alloc(10_000, 'x'));
    const reserve = createSpaceReserve(file);
    await reserve.ensure(4096, 100_000, () => true);
    const size = (await stat(file)).size;
    expect(size).toBeGreaterThanOrEqual(104_096);
    const content = await readFile(file);
    expect(content.subarray(0, 10_000).equals(Buffer.alloc(10_000, 'x'))).toBe(true);
    expect(content.subarray(10_000).equals(Buffer.alloc(size - 10_000))).toBe(true);
    await reserve.ensure(4096, 100_000, () => true);
    expect((await stat(file)).size).toBe(size);
    await reserve.close();
    await rm(path, { recursive: true });
  });

  it('is bounded by the bytes of a commit and the pages there are, however many changes it has', () => {
    const entries = Array.from({ length: 25_000 }, (_, index) => [`${index}`.padStart(60, '0'), Buffer.of(1)] as const);
    const MiB = 1024 * 1024;
    // A page for each of them would be 221 MB.
    expect(commitBytes([entries], 1 * MiB)).toBeLessThan(10 * MiB);
    expect(commitBytes([entries], 1 * MiB)).toBeGreaterThan(25_000 * 61);
    const large = [['key', Buffer.alloc(3 * MiB)] as const];
    expect(commitBytes([large], 1 * MiB)).toBeGreaterThan(3 * MiB);
  });
});

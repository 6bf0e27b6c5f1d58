/**
 * History of nodes: nothing is lost or counted twice over restarts of agents and of the service; an instance that is killed
 * loses what it has counted of slots that it has not written (decisions 340 and 360).
 */
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ServiceError } from '../../src/kernel/errors.js';
import { silentLogger } from '../../src/kernel/logger.js';
import type { Collection, CollectionSpec, Fields, ReadStore } from '../../src/storage/read-store.js';
import { openHistoryDocuments } from '../../src/reports/history/documents.js';
import { openHistory, type History } from '../../src/reports/history/history.js';
import { counted, hourMs, pack, slotMs, unpack, type Point, type Points } from '../../src/reports/history/points.js';
import type { Carriers, PresenceFacts } from '../../src/reports/port.js';
import { openReports, type ReportsService } from '../../src/reports/reports.js';
import type { ManualClock } from '../support/manual-clock.js';
import { switchedReadStore } from '../support/switched-read-store.js';
import { openedReports, type OpenedReports } from '../support/opened-reports.js';
import { heartbeatFactsOf, linkOfChain, processNamed, runningListener } from '../support/reported-tables.js';
import { turnsDuring } from '../support/turns.js';

const node = 'n1';
const chain = 'c1';
const upstream = 'u1';
const carried: Carriers = {
  chains: new Set([chain]),
  ends: new Map([[chain, [chain, upstream]]]),
  chainOfListener: new Map([['tcp/0.0.0.0/443', chain]]),
  begins: new Set(['tcp/0.0.0.0/443']),
  upstreams: new Set([upstream]),
};
const presence: PresenceFacts = { session_id: 's', instance_id: 'i', pushed_generation: 0, pushed_at: null };
const offlineAfterMs = 30_000;
/** How long a slot that is over waits for late reports. */
const minuteMs = 60_000;

let opened: OpenedReports;
let clock: ManualClock;
let all: ReportsService[];
let started = 0;
beforeEach(async () => {
  opened = await openedReports(Date.parse('2026-03-01T00:00:00Z'), () => carried);
  clock = opened.clock;
  deletionTime = clock.now;
  all = [];
});
afterEach(() => opened.close());

interface Instance {
  readonly reports: ReportsService;
  /** What reaches the store from now on is refused. */
  kill(): void;
}

async function startInstance(): Promise<Instance> {
  const name = `i${(started += 1)}`;
  const reports = await opened.oneOfSeveral(name);
  all.push(reports);
  return { reports, kill: () => opened.dead.add(name) };
}

const start = async (): Promise<ReportsService> => (await startInstance()).reports;

/** The time by which old points are merged and deleted; undefined while clocks disagree. */
let deletionTime: () => number | undefined;
const depsOf = (readStore = opened.readStore) => ({
  readStore,
  clock,
  logger: silentLogger,
  deletionTime: () => deletionTime(),
});
const historyOf = (name: string, readStore?: ReadStore): Promise<History> => openHistory(depsOf(readStore), name);

/** Stores the first points that it is given and says that it could not. */
async function failingAfterwards(): Promise<{ readonly history: History }> {
  let failed = false;
  const readStore: ReadStore = {
    ...opened.readStore,
    async collection<F extends Fields>(spec: CollectionSpec): Promise<Collection<F>> {
      const collection = await opened.readStore.collection<F>(spec);
      const set: Collection<F>['set'] = async (documents) => {
        await collection.set(documents);
        if (!failed) {
          failed = true;
          throw new ServiceError('unavailable', 'away');
        }
      };
      return { ...collection, set };
    },
  };
  return { history: await historyOf('fails', readStore) };
}

/** What a process of an agent has counted. */
interface Process {
  readonly id: string;
  bytes: number;
  sessions: number;
  /** In seconds. */
  readonly uptime?: number;
}
const noBytes = (id: string): Process => ({ id, bytes: 0, sessions: 0 });

async function beat(reports: ReportsService, { id, bytes, sessions, uptime = 1 }: Process, rtt_ms = 2): Promise<void> {
  const figures = { rtt_ms, bytes_in: 3 * bytes, bytes_out: bytes };
  const link = linkOfChain(chain, { peer_endpoint: '192.0.2.2:443', ...figures });
  const counters = { bytes_in: bytes, bytes_out: 3 * bytes, total_sessions: sessions, error_sessions: 0 };
  const facts = { process_id: id, cpu_usage: 0, memory_usage: 0, uptime_seconds: uptime };
  const tables = { link_metrics: [link], runtime_listeners: [runningListener(443, counters)] };
  reports.alive(node, presence, offlineAfterMs, heartbeatFactsOf({ ...facts, ...tables }));
  const upstreams = [{ cluster: upstream, requests: sessions, errors: 0, healthy: true, latency_p99_ms: 1 }];
  const gateway = { requests: 0, errors: 0, worker_restarts: 0, latency_p50_ms: 0, latency_p99_ms: 0, upstreams };
  reports.metrics(node, { connections: null, bandwidth: null, gateway }, processNamed(id));
  await reports.flush();
}

const linesOf = async (reports: ReportsService, id: string) => {
  const of = async (step: '5m' | '1h') => (await reports.history(id, step, 0)).get(node) ?? new Map<number, Point>();
  return { slots: await of('5m'), hours: await of('1h') };
};
const bytesOf = (points: Points): Record<number, number> =>
  Object.fromEntries([...points].flatMap(([at, { bytes_in }]) => (bytes_in === 0 ? [] : [[at, bytes_in]])));
const sum = (points: Points, of: (point: Point) => number): number =>
  [...points.values()].reduce((total, point) => total + of(point), 0);

describe('points', () => {
  it('are the same after they were packed, those of one resource too', () => {
    const number = fc.oneof(fc.nat(300), fc.maxSafeNat());
    const point = fc.record(
      Object.fromEntries(counted.map((name) => [name, number])) as Record<(typeof counted)[number], typeof number>,
    );
    const points = fc
      .uniqueArray(fc.tuple(fc.nat(300), point), { selector: ([at]) => at })
      .map((given) => new Map([...given].sort(([a], [b]) => a - b).map(([at, one]) => [1000 + at, one])));
    fc.assert(
      fc.property(fc.array(points, { maxLength: 4 }), fc.nat(3), (series, wanted) => {
        const packed = pack(series, 1000);
        expect(unpack(packed, 1000, () => true)).toEqual(series);
        expect(unpack(packed, 1000, (index) => index === wanted)[wanted]).toEqual(series[wanted]);
      }),
    );
  });
});

describe('the history of a node, its chain and its upstream', () => {
  it('has all that processes reported, in the slot in which they did, but what a killed instance had not written', async () => {
    let seed = 7;
    const random = (below: number): number => {
      seed = (seed * 16807) % 2147483647;
      return seed % below;
    };
    const slotOf = (time: number): number => Math.floor(time / slotMs);
    const counts = () => ({ bytes: new Map<number, number>(), sessions: new Map<number, number>() });
    const count = (into: Map<number, number>, slot: number, more: number): void => {
      if (more > 0) into.set(slot, (into.get(slot) ?? 0) + more);
    };
    const kept = counts();
    let ofInstance = counts();
    const keep = (slotsBefore: number): void => {
      for (const of of ['bytes', 'sessions'] as const) {
        for (const [slot, value] of ofInstance[of]) if (slot < slotsBefore) count(kept[of], slot, value);
      }
      ofInstance = counts();
    };
    let agent = noBytes('00');
    let instance = await startInstance();
    const ways = { killed: 0, closed: 0, left: 0 };
    await instance.reports.sessionOpened(node, presence, offlineAfterMs);
    for (let turn = 0; turn < 200; turn += 1) {
      const what = random(20);
      // A new process of the agent; another instance.
      if (what === 0) agent = noBytes(turn.toString(16).padStart(4, '0'));
      if (what < 2) {
        const way = (['killed', 'closed', 'left'] as const)[random(3)] ?? 'left';
        ways[way] += 1;
        if (way === 'killed') instance.kill();
        if (way === 'closed') await instance.reports.close();
        // The last flush was at this time of the clock.
        keep(way === 'killed' ? slotOf(clock.now() - minuteMs) : Number.POSITIVE_INFINITY);
        instance = await startInstance();
        await instance.reports.sessionOpened(node, presence, offlineAfterMs);
      }
      clock.advance(random(3) === 0 ? 10_000 : random(90_000));
      const [bytes, more] = [random(4) === 0 ? 0 : random(5_000), random(5)];
      agent.bytes += bytes;
      agent.sessions += more;
      await beat(instance.reports, agent);
      count(ofInstance.bytes, slotOf(clock.now()), bytes);
      count(ofInstance.sessions, slotOf(clock.now()), more);
    }
    expect(Math.min(ways.killed, ways.closed, ways.left)).toBeGreaterThan(0);
    keep(Number.POSITIVE_INFINITY);
    for (const reports of all) if (reports !== instance.reports) await reports.close();
    const total = (of: ReadonlyMap<number, number>): number => [...of.values()].reduce((a, b) => a + b, 0);
    for (const closed of [false, true]) {
      if (closed) await instance.reports.close();
      const reader = closed ? await start() : instance.reports;
      for (const id of [node, chain, upstream]) {
        const { slots, hours } = await linesOf(reader, id);
        expect(bytesOf(slots), id).toEqual(Object.fromEntries(kept.bytes));
        expect(sum(hours, ({ bytes_in }) => bytes_in)).toBe(total(kept.bytes));
        expect(sum(slots, ({ bytes_out }) => bytes_out)).toBe(3 * total(kept.bytes));
        expect(sum(slots, (point) => point.sessions)).toBe(total(kept.sessions));
        expect(sum(slots, ({ rtt_us }) => rtt_us) / sum(slots, ({ rtts }) => rtts)).toBe(2_000);
      }
    }
  });

  it('leaves out what a process had counted long before anything was known of it, as after a restore', async () => {
    const reports = await start();
    const agent = { ...noBytes('aa'), bytes: 1_000_000, sessions: 9, uptime: 86_400 };
    await beat(reports, agent);
    clock.advance(10_000);
    await beat(reports, { ...agent, bytes: 1_000_070, sessions: 10 });
    for (const id of [node, chain, upstream]) {
      const { slots } = await linesOf(reports, id);
      expect([sum(slots, ({ bytes_in }) => bytes_in), sum(slots, ({ sessions }) => sessions)], id).toEqual([70, 1]);
    }
  });

  it('counts nothing twice when points are written again after a failure', async () => {
    const { reports, kill } = await startInstance();
    const agent = { ...noBytes('aa'), bytes: 100 };
    await beat(reports, agent);
    const first = clock.now() / slotMs;
    // Its points are stored, although it is told that they are not.
    const { history } = await failingAfterwards();
    history.count(node, clock.now(), [[chain, { bytes_in: 7 }]]);
    clock.advance(slotMs + minuteMs);
    await expect(history.flush()).rejects.toThrow('away');
    await history.flush();
    agent.bytes = 150;
    await beat(reports, agent);
    expect(bytesOf((await linesOf(reports, chain)).slots)).toEqual({ [first]: 107, [first + 1]: 50 });
    await history.close();
    kill();
    expect(bytesOf((await linesOf(await start(), chain)).slots)).toEqual({ [first]: 107 });
  });

  it('keeps an hour of points while the read store is away, and gives up older ones', async () => {
    const readStore = switchedReadStore(opened.readStore);
    const history = await historyOf('away', readStore);
    readStore.mode = 'out';
    const first = clock.now() / slotMs;
    for (let slot = 0; slot < 20; slot += 1) {
      history.count(node, clock.now(), [[chain, { bytes_in: slot }]]);
      clock.advance(slotMs);
      await history.flush().catch(() => undefined);
    }
    readStore.mode = 'works';
    await history.close();
    const reopened = await historyOf('away', readStore);
    const slots = (await reopened.read(chain, '5m', 0)).get(node) ?? new Map();
    expect([...slots.keys()].sort((a, b) => a - b)).toEqual(
      Array.from({ length: 12 }, (_, index) => first + 8 + index),
    );
    await reopened.close();
  });

  it('says for which share of the time the node was online, over the end of a slot', async () => {
    const reports = await start();
    for (let seconds = 0; seconds <= 600; seconds += 20) {
      await beat(reports, noBytes('aa'));
      clock.advance(20_000);
    }
    clock.advance(slotMs);
    await beat(reports, noBytes('aa'));
    const { slots } = await linesOf(reports, node);
    const first = Date.parse('2026-03-01T00:00:00Z') / slotMs;
    expect([first, first + 1, first + 2].map((slot) => slots.get(slot)?.online_ms)).toEqual([slotMs, slotMs, 0]);
  });

  it('keeps slots for a day and hours for 30 days, with the same sums', async () => {
    const reports = await start();
    const agent = noBytes('aa');
    for (let hour = 0; hour < 60; hour += 1) {
      agent.bytes += 100 + hour;
      await beat(reports, agent);
      clock.advance(hourMs);
    }
    const before = (await linesOf(reports, chain)).hours;
    const history = await historyOf('folds');
    await history.fold();
    const { slots, hours } = await linesOf(reports, chain);
    expect(hours).toEqual(before);
    expect(hours.size).toBe(60);
    // Stretches of eight hours are put together when all of one is older than a day.
    expect(slots.size).toBe(28);
    clock.advance(45 * 24 * hourMs);
    await history.fold();
    expect(sum((await history.read(chain, '1h', 0)).get(node) ?? new Map(), ({ bytes_in }) => bytes_in)).toBe(0);
    await history.close();
  });

  it('makes hours of what several instances have counted, and the same ones again if it had ended halfway', async () => {
    const several = 60;
    for (let index = 0; index < several; index += 1) {
      const { reports } = await startInstance();
      await reports.sessionOpened(node, presence, offlineAfterMs);
      await beat(reports, { ...noBytes('aa'), bytes: 10 * (index + 1) });
      await reports.close();
    }
    const hour = clock.now() / hourMs;
    clock.advance(2 * 24 * hourMs);
    const history = await historyOf('folds');
    const collection = await opened.readStore.collection({
      name: 'history',
      version: 2,
      index: { group: 'resources', order: 'from' },
    });
    const some = await collection.list('5m/', 20);
    await history.fold();
    expect(bytesOf((await history.read(chain, '1h', 0)).get(node) ?? new Map())).toEqual({ [hour]: 10 * several });
    // As if some of what it was made of had not been deleted.
    await collection.set(some);
    await history.fold();
    expect(bytesOf((await history.read(chain, '1h', 0)).get(node) ?? new Map())).toEqual({ [hour]: 10 * several });
    expect(await collection.list('5m/', 1)).toEqual([]);
    await history.close();
  });

  it('is read in turns of the event loop where many nodes have counted', async () => {
    const history = await historyOf('many');
    const nodes = 250;
    for (let number = 0; number < nodes; number += 1) {
      history.count(`n${number}`, clock.now(), [[upstream, { sessions: 1 }]]);
    }
    clock.advance(hourMs);
    await history.flush();
    const [read, turns] = await turnsDuring(history.read(upstream, '5m', 0));
    expect(read.size).toBe(nodes);
    expect(turns).toBeGreaterThanOrEqual(2);
    await history.close();
  });

  it('is read from the store a few documents at a time, and none is held until all are read', async () => {
    let finds = 0;
    const readStore: ReadStore = {
      ...opened.readStore,
      async collection<F extends Fields>(spec: CollectionSpec): Promise<Collection<F>> {
        const collection = await opened.readStore.collection<F>(spec);
        const find: Collection<F>['find'] = (query) => {
          finds += 1;
          return collection.find(query);
        };
        return { ...collection, find };
      },
    };
    const documents = await openHistoryDocuments(depsOf(readStore), 'many');
    const point = { bytes_in: 1, bytes_out: 0, sessions: 0, errors: 0, online_ms: 0, rtt_us: 0, rtts: 0 };
    const nodes = Array.from({ length: 250 }, (_, number) => ({
      nodeId: `n${number}`,
      points: new Map([[upstream, point]]),
    }));
    await documents.write(clock.now() / slotMs, nodes, () => undefined);
    const read: number[] = [];
    for await (const { points } of documents.read(upstream, '5m', 0)) read.push(points.size && finds);
    expect(read).toEqual([...Array(100).fill(1), ...Array(100).fill(2), ...Array(50).fill(3)]);
  });

  it('counts in the present, and deletes nothing, after a clock that was ahead', async () => {
    const history = await historyOf('ahead');
    const first = clock.now() / slotMs;
    history.count(node, clock.now(), [[chain, { bytes_in: 1 }]]);
    clock.jump(45 * 24 * hourMs);
    // The clocks of the stores say otherwise.
    deletionTime = () => undefined;
    await history.flush();
    await history.fold();
    clock.jump(-45 * 24 * hourMs);
    for (const bytes_in of [2, 4]) {
      history.count(node, clock.now(), [[chain, { bytes_in }]]);
      await history.flush();
      clock.advance(slotMs);
    }
    await history.flush();
    expect(bytesOf((await history.read(chain, '5m', 0)).get(node) ?? new Map())).toEqual({
      [first]: 1,
      [first + 1]: 6,
    });
    await history.close();
  });

  it('is not recorded where it is off', async () => {
    const reports = await openReports({ ...depsOf(), instanceId: 'i' });
    await beat(reports, { ...noBytes('aa'), bytes: 5 });
    expect(reports.historySince).toBe(undefined);
    expect(await reports.history(node, '5m', 0)).toEqual(new Map());
    await reports.close();
  });
});

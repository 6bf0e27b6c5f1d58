/** History of nodes: nothing is lost or counted twice over restarts of agents and of the service (decisions 360 to 363). */
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ServiceError } from '../../src/kernel/errors.js';
import { silentLogger } from '../../src/kernel/logger.js';
import type { Collection, CollectionSpec, Fields, ReadStore } from '../../src/storage/read-store.js';
import { openHistory } from '../../src/telemetry/history.js';
import type { Point, Points } from '../../src/telemetry/history-points.js';
import { counted, hourMs, pack, slotMs, unpack } from '../../src/telemetry/history-points.js';
import type { Carriers, LinkSample, PresenceFacts } from '../../src/telemetry/port.js';
import type { TelemetryService } from '../../src/telemetry/telemetry.js';
import { createTelemetry } from '../../src/telemetry/telemetry.js';
import { createManualClock } from '../support/manual-clock.js';
import type { ManualClock } from '../support/manual-clock.js';
import { heartbeatFactsOf } from '../support/reported-tables.js';
import { openTemporaryStores } from '../support/temporary-stores.js';
import type { TemporaryStores } from '../support/temporary-stores.js';

const node = 'n1';
const chain = 'c1';
const upstream = 'u1';
const carried: Carriers = {
  chains: new Set([chain]),
  ends: new Map([[chain, [chain, upstream]]]),
  chainOfListener: new Map([['tcp/0.0.0.0/443', chain]]),
  upstreams: new Set([upstream]),
};
const presence: PresenceFacts = { session_id: 's', instance_id: 'i', pushed_generation: 0, pushed_at: null };
const offlineAfterMs = 30_000;

let clock: ManualClock;
let stores: TemporaryStores;
let opened: TelemetryService[];
beforeEach(async () => {
  clock = createManualClock(Date.parse('2026-03-01T00:00:00Z'));
  stores = await openTemporaryStores(clock);
  opened = [];
});
afterEach(async () => {
  for (const telemetry of opened) await telemetry.close();
  await stores.close();
});

async function start(readStore: ReadStore = stores.readStore): Promise<TelemetryService> {
  const history = { instanceId: `i${opened.length}`, carriers: () => carried };
  const telemetry = await createTelemetry({ readStore, clock, logger: silentLogger, history });
  opened.push(telemetry);
  return telemetry;
}

/** What a process of an agent has counted. */
interface Process {
  readonly id: string;
  bytes: number;
  sessions: number;
}
const noBytes = (id: string): Process => ({ id, bytes: 0, sessions: 0 });

async function beat(telemetry: TelemetryService, { id, bytes, sessions }: Process, rtt_ms = 2): Promise<void> {
  const link: LinkSample = {
    resource_type: 'l4_chain',
    resource_id: chain,
    peer_node_id: '',
    peer_endpoint: '192.0.2.2:443',
    outer: 'tcp',
    rtt_ms,
    jitter_ms: null,
    loss_ratio: null,
    bytes_in: 3 * bytes,
    bytes_out: bytes,
    active_sessions: 0,
  };
  const listener = { transport: 'tcp', listen_addr: '0.0.0.0', listen_port: 443, state: 'running', routes: [] };
  const counters = { bytes_in: bytes, bytes_out: 3 * bytes, total_sessions: sessions, error_sessions: 0 };
  const facts = { process_id: id, cpu_usage: 0, memory_usage: 0, uptime_seconds: 1 };
  const tables = { link_metrics: [link], runtime_listeners: [{ ...listener, ...counters }] };
  telemetry.alive(node, presence, offlineAfterMs, heartbeatFactsOf({ ...facts, ...tables }));
  const upstreams = [{ cluster: upstream, requests: sessions, errors: 0, healthy: true, latency_p99_ms: 1 }];
  const gateway = { requests: 0, errors: 0, worker_restarts: 0, latency_p50_ms: 0, latency_p99_ms: 0, upstreams };
  telemetry.metrics(node, { connections: null, bandwidth: null, gateway }, id);
  await telemetry.flush();
}

const linesOf = async (telemetry: TelemetryService, id: string) =>
  (await telemetry.history(id, [node])).get(node) ?? { slots: new Map(), hours: new Map() };
const bytesOf = (points: Points): Record<number, number> =>
  Object.fromEntries([...points].flatMap(([at, { bytes_in }]) => (bytes_in === undefined ? [] : [[at, bytes_in]])));
const sum = (points: Points, of: (point: Point) => number | undefined): number =>
  [...points.values()].reduce((total, point) => total + (of(point) ?? 0), 0);

describe('points', () => {
  it('are the same after they were packed', () => {
    const point = fc.record(
      Object.fromEntries(counted.map((name) => [name, fc.maxSafeNat()])) as Record<string, fc.Arbitrary<number>>,
      { requiredKeys: [] },
    );
    const points = fc.uniqueArray(fc.tuple(fc.nat(300), point), { selector: ([number]) => number });
    fc.assert(
      fc.property(points, (given) => {
        const sorted = new Map([...given].sort(([a], [b]) => a - b).map(([number, one]) => [1000 + number, one]));
        expect(unpack(pack(sorted, 1000), 1000)).toEqual(sorted);
      }),
    );
  });
});

describe('the history of a node, its chain and its upstream', () => {
  it('has all that processes reported, in the slot in which they did, whatever restarts and is killed', async () => {
    let seed = 7;
    const random = (below: number): number => {
      seed = (seed * 16807) % 2147483647;
      return seed % below;
    };
    const expected = new Map<number, number>();
    let sessions = 0;
    let agent = noBytes('00');
    let telemetry = await start();
    await telemetry.sessionOpened(node, presence, offlineAfterMs);
    for (let turn = 0; turn < 150; turn += 1) {
      const what = random(20);
      // A new process of the agent; another instance, with the old one killed, closed or just left.
      if (what === 0) agent = noBytes(turn.toString(16).padStart(4, '0'));
      if (what < 2) {
        if (random(2) === 0) await telemetry.flush();
        telemetry = await start();
        await telemetry.sessionOpened(node, presence, offlineAfterMs);
      }
      clock.advance(random(3) === 0 ? 10_000 : random(90_000));
      const [bytes, more] = [random(4) === 0 ? 0 : random(5_000), random(5)];
      agent.bytes += bytes;
      agent.sessions += more;
      sessions += more;
      await beat(telemetry, agent);
      const slot = Math.floor(clock.now() / slotMs);
      if (bytes > 0) expected.set(slot, (expected.get(slot) ?? 0) + bytes);
    }
    const inSlots = Object.fromEntries(expected);
    for (const id of [node, chain, upstream]) {
      const { slots, hours } = await linesOf(telemetry, id);
      expect(bytesOf(slots), id).toEqual(inSlots);
      const total = [...expected.values()].reduce((a, b) => a + b, 0);
      expect(sum(hours, ({ bytes_in }) => bytes_in)).toBe(total);
      expect(sum(slots, ({ bytes_out }) => bytes_out)).toBe(3 * total);
      expect(sum(slots, (point) => point.sessions)).toBe(sessions);
      expect(sum(slots, ({ rtt_us }) => rtt_us) / sum(slots, ({ rtts }) => rtts)).toBe(2_000);
    }
  });

  it('counts a slot once when the instance dies between the point and the table', async () => {
    let dies = false;
    const dying: ReadStore = {
      ...stores.readStore,
      async collection<F extends Fields>(spec: CollectionSpec): Promise<Collection<F>> {
        const collection = await stores.readStore.collection<F>(spec);
        const set: Collection<F>['set'] = (documents) =>
          dies && spec.name !== 'history'
            ? Promise.reject(new ServiceError('unavailable', 'away'))
            : collection.set(documents);
        return { ...collection, set };
      },
    };
    const first = await start(dying);
    const agent = { ...noBytes('aa'), bytes: 100 };
    await beat(first, agent);
    clock.advance(slotMs);
    dies = true;
    agent.bytes = 150;
    await expect(beat(first, agent)).rejects.toThrow('away');
    const second = await start();
    expect(bytesOf((await linesOf(second, node)).slots)).toEqual({ [clock.now() / slotMs - 1]: 100 });
    agent.bytes = 170;
    await beat(second, agent);
    const { slots } = await linesOf(second, node);
    expect(bytesOf(slots)).toEqual({ [clock.now() / slotMs - 1]: 100, [clock.now() / slotMs]: 70 });
    dies = false;
  });

  it('says for which share of the time the node was online, over the end of a slot', async () => {
    const telemetry = await start();
    for (let seconds = 0; seconds <= 600; seconds += 20) {
      await beat(telemetry, noBytes('aa'));
      clock.advance(20_000);
    }
    clock.advance(slotMs);
    await beat(telemetry, noBytes('aa'));
    const { slots } = await linesOf(telemetry, node);
    const first = Date.parse('2026-03-01T00:00:00Z') / slotMs;
    expect([first, first + 1, first + 2].map((slot) => slots.get(slot)?.online_ms)).toEqual([
      slotMs,
      slotMs,
      undefined,
    ]);
  });

  it('keeps slots for a day and hours for 30 days, with the same sums', async () => {
    const telemetry = await start();
    const agent = noBytes('aa');
    for (let hour = 0; hour < 60; hour += 1) {
      agent.bytes += 100 + hour;
      await beat(telemetry, agent);
      clock.advance(hourMs);
    }
    const before = (await linesOf(telemetry, chain)).hours;
    const history = await openHistory({ readStore: stores.readStore, clock, logger: silentLogger }, 'i0');
    await history.fold();
    const { slots, hours } = await linesOf(telemetry, chain);
    expect(hours).toEqual(before);
    expect(hours.size).toBe(60);
    // Stretches of six hours are put together when all of one is older than a day.
    expect(slots.size).toBe(30);
    clock.advance(45 * 24 * hourMs);
    await history.fold();
    expect(sum((await history.read(chain)).get(node)?.hours ?? new Map(), ({ bytes_in }) => bytes_in)).toBe(0);
    await history.close();
  });

  it('is not recorded where it is off', async () => {
    const telemetry = await createTelemetry({ readStore: stores.readStore, clock, logger: silentLogger });
    opened.push(telemetry);
    await beat(telemetry, { ...noBytes('aa'), bytes: 5 });
    expect(telemetry.recordsHistory).toBe(false);
    expect(await telemetry.history(node, [node])).toEqual(new Map());
    const stored = await stores.readStore.collection({ name: 'node_runtime', version: 2 });
    expect((await stored.get(node))?.fields).not.toHaveProperty('open');
  });
});

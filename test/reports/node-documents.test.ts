/** The newest report of each node in the read store: batched, and changed tables only. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ServiceError } from '../../src/kernel/errors.js';
import { silentLogger } from '../../src/kernel/logger.js';
import type { Collection, CollectionSpec, Fields, ReadStore } from '../../src/storage/read-store.js';
import type { MetricsFacts, HeartbeatFacts, LinkSample, PresenceFacts, Telemetry } from '../../src/reports/port.js';
import { createTelemetry } from '../../src/reports/telemetry.js';
import { createManualClock } from '../support/manual-clock.js';
import type { ManualClock } from '../support/manual-clock.js';
import { heartbeatFactsOf, linksOnWire, listenersOnWire, processNamed } from '../support/reported-tables.js';
import type { Reported } from '../support/reported-tables.js';
import { openTemporaryStores } from '../support/temporary-stores.js';
import type { TemporaryStores } from '../support/temporary-stores.js';

const nothingMeasured: MetricsFacts = { connections: null, bandwidth: null, gateway: null };

let clock: ManualClock;
let stores: TemporaryStores;
/** Documents written and read, by collection. */
let writes: Map<string, number>;
let reads: Map<string, number>;
let away: boolean;

beforeEach(async () => {
  clock = createManualClock();
  stores = await openTemporaryStores(clock);
  writes = new Map();
  reads = new Map();
  away = false;
});
afterEach(() => stores.close());

const count = (counts: Map<string, number>, name: string, documents: number): void =>
  void counts.set(name, (counts.get(name) ?? 0) + documents);

const counting = (): ReadStore => ({
  ...stores.readStore,
  async collection<F extends Fields>(spec: CollectionSpec): Promise<Collection<F>> {
    const collection = await stores.readStore.collection<F>(spec);
    return {
      ...collection,
      async set(documents) {
        if (away) throw new ServiceError('unavailable', 'away');
        count(writes, spec.name, documents.length);
        await collection.set(documents);
      },
      async get(id) {
        count(reads, spec.name, 1);
        return collection.get(id);
      },
      async getMany(ids) {
        const documents = await collection.getMany(ids);
        count(reads, spec.name, documents.length);
        return documents;
      },
      find: () => Promise.reject(new Error(`${spec.name} is searched`)),
    };
  },
});
const presence: PresenceFacts = { session_id: 's', instance_id: 'i', pushed_generation: 0, pushed_at: null };
const beatOf = (telemetry: Telemetry, nodeId: string, heartbeat: HeartbeatFacts): void =>
  telemetry.alive(nodeId, presence, 30_000, heartbeat);
const start = () => createTelemetry({ readStore: counting(), clock, logger: silentLogger });
const stored = async (name: string, nodeId: string, version = 1): Promise<Fields | undefined> =>
  (await (await stores.readStore.collection({ name, version })).get(nodeId))?.fields;

const heartbeat = (cpu_usage: number, state = 'listening'): Reported => ({
  cpu_usage,
  memory_usage: 0.5,
  uptime_seconds: 10,
  link_metrics: [],
  runtime_listeners: [{ transport: 'tcp', listen_addr: '0.0.0.0', listen_port: 443, state, routes: [], bytes_in: 7 }],
});
const link: LinkSample = {
  resource_type: 'l4_chain',
  resource_id: 'c1',
  peer_node_id: 'n2',
  peer_endpoint: '192.0.2.2:443',
  outer: 'tcp',
  rtt_ms: 3,
  jitter_ms: null,
  loss_ratio: null,
  bytes_in: 1,
  bytes_out: 2,
  active_sessions: 3,
};

describe('a heartbeat', () => {
  it('shows its figures in the vitals of its node', async () => {
    const telemetry = await start();
    beatOf(telemetry, 'n1', heartbeatFactsOf(heartbeat(0.25)));
    await telemetry.flush();
    expect(await telemetry.vitals(['n1', 'n2'])).toEqual(
      new Map([
        ['n1', { last_seen_at: '2025-01-01T00:00:00.000Z', cpu_usage: 0.25, memory_usage: 0.5, uptime_seconds: 10 }],
        ['n2', { last_seen_at: null, cpu_usage: null, memory_usage: null, uptime_seconds: null }],
      ]),
    );
    await telemetry.close();
  });

  it('is stored with its time of receipt, its runtime table and its links', async () => {
    const telemetry = await start();
    beatOf(telemetry, 'n1', heartbeatFactsOf({ ...heartbeat(0.25), link_metrics: [link] }));
    await telemetry.flush();
    expect(await stored('node_heartbeats', 'n1')).toMatchObject({ reported_at: '2025-01-01T00:00:00.000Z' });
    expect(await stored('node_runtime', 'n1', 2)).toMatchObject({
      wire: listenersOnWire(heartbeat(0.25).runtime_listeners),
    });
    expect(await stored('node_links', 'n1', 2)).toMatchObject({ wire: linksOnWire([link]) });
    await telemetry.close();
  });

  it('that waits when a new session begins is written whole, and so is the first one of the new session', async () => {
    const telemetry = await start();
    const presence = { session_id: 's2', instance_id: 'i1', pushed_generation: 0, pushed_at: null };
    const beat = (cpu: number): void => beatOf(telemetry, 'n1', heartbeatFactsOf(heartbeat(cpu)));
    beat(0.1);
    await telemetry.flush();
    beat(0.2);
    await telemetry.sessionOpened('n1', presence, 30_000);
    await telemetry.flush();
    expect(await stored('node_heartbeats', 'n1')).toMatchObject({ cpu_usage: 0.2 });
    beat(0.3);
    await telemetry.flush();
    expect(await stored('node_heartbeats', 'n1')).toMatchObject({ cpu_usage: 0.3 });
    expect(await stored('node_runtime', 'n1', 2)).toMatchObject({
      wire: listenersOnWire(heartbeat(0.3).runtime_listeners),
    });
    expect(writes.get('node_runtime')).toBe(2);
    await telemetry.close();
  });

  it('has its tables when they change and change back while the store is away', async () => {
    const telemetry = await start();
    const beat = (state: string): void => beatOf(telemetry, 'n1', heartbeatFactsOf(heartbeat(0.1, state)));
    beat('first');
    await telemetry.flush();
    away = true;
    beat('second');
    await expect(telemetry.flush()).rejects.toThrow();
    beat('first');
    away = false;
    await telemetry.flush();
    beat('third');
    beat('third');
    await telemetry.flush();
    beat('third');
    await telemetry.flush();
    expect(await stored('node_runtime', 'n1', 2)).toMatchObject({
      wire: listenersOnWire(heartbeat(0.1, 'third').runtime_listeners),
    });
    await telemetry.close();
  });

  it('rewrites only its figures and time when runtime table and links have not changed', async () => {
    const telemetry = await start();
    for (let round = 0; round < 3; round += 1) {
      beatOf(telemetry, 'n1', heartbeatFactsOf({ ...heartbeat(round / 10), link_metrics: [link] }));
      await telemetry.flush();
      clock.advance(10_000);
    }
    expect(Object.fromEntries(writes)).toEqual({ node_runtime: 1, node_links: 1, node_heartbeats: 3 });
    expect(await stored('node_heartbeats', 'n1')).toMatchObject({ reported_at: '2025-01-01T00:00:20.000Z' });
    beatOf(telemetry, 'n1', heartbeatFactsOf({ ...heartbeat(0.3, 'failed'), link_metrics: [link] }));
    await telemetry.flush();
    beatOf(telemetry, 'n1', heartbeatFactsOf({ ...heartbeat(0.3, 'failed'), link_metrics: [{ ...link, rtt_ms: 4 }] }));
    await telemetry.flush();
    expect(Object.fromEntries(writes)).toEqual({ node_runtime: 2, node_links: 2, node_heartbeats: 5 });
    expect(await stored('node_runtime', 'n1', 2)).toMatchObject({
      wire: listenersOnWire(heartbeat(0.3, 'failed').runtime_listeners),
    });
    expect(await stored('node_links', 'n1', 2)).toMatchObject({ wire: linksOnWire([{ ...link, rtt_ms: 4 }]) });
    await telemetry.close();
  });

  it('with an empty table means that nothing listens', async () => {
    const telemetry = await start();
    beatOf(telemetry, 'n1', heartbeatFactsOf(heartbeat(0.1)));
    await telemetry.flush();
    beatOf(telemetry, 'n1', heartbeatFactsOf({ ...heartbeat(0.1), runtime_listeners: [] }));
    await telemetry.flush();
    expect(await stored('node_runtime', 'n1', 2)).toMatchObject({ wire: new Uint8Array(0) });
    await telemetry.close();
  });

  it('writes an unchanged table again after the node was at another instance', async () => {
    const [one, two] = [await start(), await start()];
    const facts = { session_id: 's1', instance_id: 'i1', pushed_generation: 0, pushed_at: null };
    beatOf(one, 'n1', heartbeatFactsOf({ ...heartbeat(0.1), link_metrics: [link] }));
    await one.flush();
    beatOf(two, 'n1', heartbeatFactsOf(heartbeat(0.1, 'failed')));
    await two.flush();
    await one.sessionOpened('n1', facts, 30_000);
    beatOf(one, 'n1', heartbeatFactsOf({ ...heartbeat(0.1), link_metrics: [link] }));
    await one.flush();
    expect(await stored('node_runtime', 'n1', 2)).toMatchObject({
      wire: listenersOnWire(heartbeat(0.1).runtime_listeners),
    });
    expect(await stored('node_links', 'n1', 2)).toMatchObject({ wire: linksOnWire([link]) });
    await one.close();
    await two.close();
  });

  it('replaces an older one of its node that waits to be written', async () => {
    const telemetry = await start();
    for (let round = 0; round < 100; round += 1) beatOf(telemetry, 'n1', heartbeatFactsOf(heartbeat(round / 100)));
    await telemetry.flush();
    expect(writes.get('node_heartbeats')).toBe(1);
    expect((await telemetry.vitals(['n1'])).get('n1')?.cpu_usage).toBe(0.99);
    await telemetry.close();
  });

  it('waits while the read store is away, the newest of each node only', async () => {
    const telemetry = await start();
    away = true;
    beatOf(telemetry, 'n1', heartbeatFactsOf(heartbeat(0.1)));
    await expect(telemetry.flush()).rejects.toThrow('away');
    beatOf(telemetry, 'n1', heartbeatFactsOf(heartbeat(0.2)));
    away = false;
    await telemetry.flush();
    expect((await telemetry.vitals(['n1'])).get('n1')?.cpu_usage).toBe(0.2);
    expect(writes.get('node_heartbeats')).toBe(1);
    await telemetry.close();
  });

  it('is durable once telemetry has closed', async () => {
    const telemetry = await start();
    beatOf(telemetry, 'n1', heartbeatFactsOf(heartbeat(0.1)));
    await telemetry.close();
    const reopened = await start();
    expect((await reopened.vitals(['n1'])).get('n1')?.cpu_usage).toBe(0.1);
    await reopened.close();
  });
});

describe('the vitals of a list of nodes', () => {
  const facts = { session_id: 's', instance_id: 'i', pushed_generation: 0, pushed_at: null };

  it('show the last sign of life, be it a heartbeat or anything else; a heartbeat writes it only once', async () => {
    const telemetry = await start();
    const seenAt = async () => (await telemetry.vitals(['n1'])).get('n1')?.last_seen_at;
    telemetry.alive('n1', facts, 30_000);
    telemetry.alive('n1', facts, 30_000, heartbeatFactsOf(heartbeat(0.1)));
    await telemetry.flush();
    expect([await seenAt(), writes.get('node_seen')]).toEqual(['2025-01-01T00:00:00.000Z', undefined]);
    clock.advance(1_000);
    telemetry.alive('n1', facts, 30_000);
    await telemetry.flush();
    expect([await seenAt(), writes.get('node_seen')]).toEqual(['2025-01-01T00:00:01.000Z', 1]);
    telemetry.alive('n1', facts, 30_000);
    clock.advance(1_000);
    beatOf(telemetry, 'n1', heartbeatFactsOf(heartbeat(0.1)));
    await telemetry.flush();
    expect(await seenAt()).toBe('2025-01-01T00:00:02.000Z');
    await telemetry.close();
  });

  it('cost two small documents per node, whatever the agents report beside', async () => {
    const telemetry = await start();
    const nodeIds = Array.from({ length: 50 }, (_, at) => `n${at}`);
    for (const nodeId of nodeIds) {
      telemetry.alive(nodeId, facts, 30_000);
      await telemetry.flush();
      beatOf(telemetry, nodeId, heartbeatFactsOf({ ...heartbeat(0.1), link_metrics: [link] }));
      telemetry.metrics(nodeId, nothingMeasured, processNamed(''));
    }
    await telemetry.flush();
    reads.clear();
    expect((await telemetry.vitals(nodeIds)).size).toBe(50);
    expect(Object.fromEntries(reads)).toEqual({ node_seen: 50, node_heartbeats: 50 });
    expect(Object.keys((await stored('node_heartbeats', 'n1')) ?? {}).sort()).toEqual([
      'cpu_usage',
      'memory_usage',
      'reported_at',
      'runs_generation',
      'uptime_seconds',
    ]);
    await telemetry.close();
  });
});

describe('the tables of a list of nodes', () => {
  it('are those of their last heartbeats, with the time; a node without one is left out', async () => {
    const telemetry = await start();
    beatOf(telemetry, 'n1', heartbeatFactsOf({ ...heartbeat(0.25), link_metrics: [link] }));
    telemetry.alive('n2', { session_id: 's', instance_id: 'i', pushed_generation: 0, pushed_at: null }, 1000);
    await telemetry.flush();
    const reported_at = '2025-01-01T00:00:00.000Z';
    const nodes = ['n2', 'n1', 'n3'];
    const { runtime_listeners: listeners } = heartbeat(0.25);
    expect(await telemetry.listeners(nodes)).toEqual(
      new Map([['n1', { reported_at, runs_generation: null, listeners, gone: {} }]]),
    );
    expect(await telemetry.links(nodes)).toEqual(new Map([['n1', { reported_at, links: [link] }]]));
    await telemetry.close();
  });

  it('are read after the time of the heartbeat, which is never newer than its table, and only where there is one', async () => {
    const telemetry = await start();
    beatOf(telemetry, 'n1', heartbeatFactsOf(heartbeat(0.25)));
    await telemetry.flush();
    reads.clear();
    await telemetry.listeners(['n1', 'n2', 'n3']);
    expect([...reads]).toEqual([
      ['node_heartbeats', 1],
      ['node_runtime', 1],
    ]);
    await telemetry.close();
  });
});

describe('metrics', () => {
  const upstreams = (...healthy: readonly boolean[]): MetricsFacts => ({
    ...nothingMeasured,
    gateway: {
      requests: 0,
      errors: 0,
      worker_restarts: 0,
      latency_p50_ms: 0,
      latency_p99_ms: 0,
      upstreams: healthy.map((one, at) => ({
        cluster: `u${at}`,
        healthy: one,
        requests: 0,
        errors: 0,
        latency_p99_ms: 0,
      })),
    },
  });

  it('are the last report, with the time of the report that changed the health of each upstream', async () => {
    const telemetry = await start();
    const since = async (report: MetricsFacts) => {
      telemetry.metrics('n1', report, processNamed(''));
      await telemetry.flush();
      clock.advance(1000);
      const reported = (await telemetry.reportedMetrics(['n1', 'n2'])).get('n1');
      expect(reported?.report).toEqual(report);
      return reported?.health_since;
    };
    const [first, , third, fourth] = [0, 1, 2, 3].map((second) => `2025-01-01T00:00:0${second}.000Z`);
    expect(await since(upstreams(true, false))).toEqual({ u0: first, u1: first });
    expect(await since(upstreams(true, false))).toEqual({ u0: first, u1: first });
    expect(await since(upstreams(true, true))).toEqual({ u0: first, u1: third });
    expect(await since(upstreams(false))).toEqual({ u0: fourth });
    await telemetry.close();
  });
});

describe('a deleted node', () => {
  it('is forgotten in every collection, with what waited to be written', async () => {
    const telemetry = await start();
    const facts = { session_id: 's', instance_id: 'i', pushed_generation: 0, pushed_at: null };
    telemetry.alive('n1', facts, 30_000);
    beatOf(telemetry, 'n1', heartbeatFactsOf({ ...heartbeat(0.1), link_metrics: [link] }));
    telemetry.metrics('n1', nothingMeasured, processNamed(''));
    await telemetry.flush();
    beatOf(telemetry, 'n1', heartbeatFactsOf(heartbeat(0.2)));
    await telemetry.forget(['n1']);
    await telemetry.flush();
    for (const [name, version] of [
      ['node_seen', 1],
      ['node_heartbeats', 1],
      ['node_runtime', 2],
      ['node_links', 2],
      ['node_metrics', 3],
    ] as const) {
      expect([name, await stored(name, 'n1', version)]).toEqual([name, undefined]);
    }
    await telemetry.close();
  });
});

describe('counters of listeners and links', () => {
  const listener = { transport: 'tcp', listen_addr: '0.0.0.0', listen_port: 443, state: 'running', routes: [] };
  const reported = (process_id: string, bytes: number, ...more: readonly number[]): HeartbeatFacts =>
    heartbeatFactsOf({
      ...heartbeat(0.1),
      process_id,
      link_metrics: [{ ...link, bytes_in: bytes }],
      runtime_listeners: [bytes, ...more].map((bytes_in, index) => ({
        ...listener,
        listen_port: 443 + index,
        bytes_in,
        total_sessions: 1,
      })),
    });
  const shown = async (telemetry: Telemetry) => {
    await telemetry.flush();
    const { listeners = [], gone = {} } = (await telemetry.listeners(['n1'])).get('n1') ?? {};
    const links = (await telemetry.links(['n1'])).get('n1')?.links ?? [];
    return { listeners: listeners.map(({ bytes_in }) => bytes_in), links: links.map(({ bytes_in }) => bytes_in), gone };
  };

  it('go on over a restart of the agent, whichever instance it connects to, and whatever it has counted by then', async () => {
    const one = await start();
    beatOf(one, 'n1', reported('aa', 70));
    expect(await shown(one)).toMatchObject({ listeners: [70], links: [70] });
    beatOf(one, 'n1', reported('bb', 80));
    expect(await shown(one)).toMatchObject({ listeners: [150], links: [150] });
    await one.close();
    const other = await start();
    await other.sessionOpened('n1', presence, 30_000);
    beatOf(other, 'n1', reported('bb', 85));
    expect(await shown(other)).toMatchObject({ listeners: [155], links: [155] });
    beatOf(other, 'n1', reported('cc', 0));
    expect(await shown(other)).toMatchObject({ listeners: [155], links: [155] });
    await other.close();
  });

  it('of an agent that does not name its process go on when they fall', async () => {
    const telemetry = await start();
    for (const bytes of [70, 5, 6]) {
      beatOf(telemetry, 'n1', reported('', bytes));
      await telemetry.flush();
    }
    expect(await shown(telemetry)).toMatchObject({ listeners: [76], links: [76] });
    await telemetry.close();
  });

  it('of a listener that is closed are kept for the totals', async () => {
    const telemetry = await start();
    beatOf(telemetry, 'n1', reported('aa', 70, 30));
    expect(await shown(telemetry)).toEqual({ listeners: [70, 30], links: [70], gone: {} });
    beatOf(telemetry, 'n1', reported('aa', 71));
    expect(await shown(telemetry)).toEqual({ listeners: [71], links: [71], gone: { bytes_in: 30, total_sessions: 1 } });
    beatOf(telemetry, 'n1', reported('aa', 71, 31));
    expect(await shown(telemetry)).toEqual({ listeners: [71, 31], links: [71], gone: {} });
    await telemetry.close();
  });
});

describe('the traffic of metrics reports', () => {
  const report = (accepted: number): MetricsFacts => ({
    connections: { active: 0, accepted, closed: 0, failed: 0, handshake_failures: 0 },
    bandwidth: null,
    gateway: null,
  });
  const accepted = async (telemetry: Telemetry): Promise<number | undefined> => {
    await telemetry.flush();
    const [connections] = telemetry.trafficMetrics();
    return (await connections?.get())?.values.find(({ labels }) => labels['event'] === 'accepted')?.value;
  };

  it('is counted from 0 for each process, and from its last report for one that another instance has heard', async () => {
    const one = await start();
    one.metrics('n1', report(7), processNamed('aa'));
    expect(await accepted(one)).toBe(7);
    one.metrics('n1', report(10), processNamed('aa'));
    expect(await accepted(one)).toBe(10);
    one.metrics('n1', report(12), processNamed('bb'));
    expect(await accepted(one)).toBe(22);
    await one.close();
    const other = await start();
    other.metrics('n1', report(15), processNamed('bb'));
    expect(await accepted(other)).toBe(3);
    await other.close();
  });
});

/** What the nodes of one instance told: in memory at once, written behind in batches, changed tables only. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { BandwidthMetrics, MetricsReport } from '../../src/gen/svc/control/v1/metrics.js';
import { metricsFacts } from '../../src/reports/from-wire.js';
import type { HeartbeatFacts, MetricsFacts } from '../../src/reports/port.js';
import type { ReportsService } from '../../src/reports/reports.js';
import { openedReports, presenceOf, type OpenedReports } from '../support/opened-reports.js';
import {
  heartbeatFactsOf,
  linkOfChain,
  linksOnWire,
  listenersTold,
  processNamed,
  runningListener,
  type Reported,
} from '../support/reported-tables.js';
import { openTemporaryStores } from '../support/temporary-stores.js';

const nothingMeasured: MetricsFacts = { connections: null, bandwidth: null, gateway: null };

let opened: OpenedReports;
let reports: ReportsService;
beforeEach(async () => {
  opened = await openedReports(undefined, undefined, openTemporaryStores);
  reports = await opened.alone();
});
afterEach(() => opened.close());

const beat = (heartbeat: Reported): void => reports.alive('n1', presenceOf('s'), 30_000, heartbeatFactsOf(heartbeat));
const stored = (collection: string) => opened.stored(collection, 'n1');

const heartbeat = (cpu_usage: number, state = 'listening'): Reported => ({
  cpu_usage,
  memory_usage: 0.5,
  uptime_seconds: 10,
  link_metrics: [],
  runtime_listeners: [runningListener(443, { state, bytes_in: 7 })],
});
/** The runtime table of a heartbeat as it is stored. */
const onStore = ({ runtime_listeners }: Reported) => {
  const { shape, values } = listenersTold(runtime_listeners);
  return { shape: shape.id, packed: shape.packed, values: new Uint8Array(Float64Array.from(values).buffer) };
};
const carried = { bytes_in: 1, bytes_out: 2, active_sessions: 3 };
const link = linkOfChain('c1', { peer_node_id: 'n2', peer_endpoint: '192.0.2.2:443', rtt_ms: 3, ...carried });

describe('a heartbeat', () => {
  it('shows its figures in the vitals of its node, at once', () => {
    beat(heartbeat(0.25));
    expect(reports.vitals('n1')).toEqual({
      last_seen_at: '2025-01-01T00:00:00.000Z',
      cpu_usage: 0.25,
      memory_usage: 0.5,
      uptime_seconds: 10,
    });
    const nothing = { last_seen_at: null, cpu_usage: null, memory_usage: null, uptime_seconds: null };
    expect(reports.vitals('n2')).toEqual(nothing);
  });

  it('is stored with its time of receipt, its runtime table and its links', async () => {
    beat({ ...heartbeat(0.25), link_metrics: [link] });
    await reports.flush();
    const at = Date.parse('2025-01-01T00:00:00Z');
    expect(await stored('node_beats')).toMatchObject({ seen_at: at, beat: { at, cpu: 0.25 } });
    expect(await stored('node_listeners')).toMatchObject(onStore(heartbeat(0.25)));
    expect(await stored('node_links')).toMatchObject({ wire: linksOnWire([link]) });
  });

  it('has its tables when they change and change back while the store is away', async () => {
    beat(heartbeat(0.1, 'first'));
    await reports.flush();
    opened.away = true;
    beat(heartbeat(0.1, 'second'));
    await expect(reports.flush()).rejects.toThrow();
    beat(heartbeat(0.1, 'first'));
    opened.away = false;
    await reports.flush();
    const first = onStore(heartbeat(0.1, 'first'));
    expect(await stored('node_listeners')).toMatchObject(first);
    beat(heartbeat(0.1, 'third'));
    await reports.flush();
    const third = onStore(heartbeat(0.1, 'third'));
    expect(await stored('node_listeners')).toMatchObject(third);
  });

  it('rewrites only its figures and time when runtime table and links have not changed', async () => {
    const { writes, clock } = opened;
    for (let round = 0; round < 3; round += 1) {
      beat({ ...heartbeat(round / 10), link_metrics: [link] });
      await reports.flush();
      clock.advance(10_000);
    }
    expect(Object.fromEntries(writes)).toEqual({ node_listeners: 1, node_links: 1, node_beats: 3 });
    beat({ ...heartbeat(0.3, 'failed'), link_metrics: [link] });
    await reports.flush();
    beat({ ...heartbeat(0.3, 'failed'), link_metrics: [{ ...link, rtt_ms: 4 }] });
    await reports.flush();
    expect(Object.fromEntries(writes)).toEqual({ node_listeners: 2, node_links: 2, node_beats: 5 });
    const failed = onStore(heartbeat(0.3, 'failed'));
    expect(await stored('node_listeners')).toMatchObject(failed);
    expect(await stored('node_links')).toMatchObject({ wire: linksOnWire([{ ...link, rtt_ms: 4 }]) });
  });

  it('brings a table back by and by that the store has lost', async () => {
    beat(heartbeat(0.1));
    await reports.flush();
    await (await opened.readStore.collection({ name: 'node_listeners', version: 2 })).remove(['n1']);
    opened.clock.advance(10_000);
    beat(heartbeat(0.2));
    await reports.flush();
    expect(await stored('node_listeners')).toBeUndefined();
    opened.clock.advance(10 * 60_000);
    beat(heartbeat(0.3));
    await reports.flush();
    expect(await stored('node_listeners')).toBeDefined();
  });

  it('with an empty table means that nothing listens', async () => {
    beat(heartbeat(0.1));
    beat({ ...heartbeat(0.1), runtime_listeners: [] });
    expect(reports.listeners('n1')?.listeners).toEqual([]);
    expect([...(reports.listenerStates('n1')?.states ?? ['?'])]).toEqual([]);
    await reports.flush();
    expect(await stored('node_listeners')).toMatchObject(onStore({ ...heartbeat(0.1), runtime_listeners: [] }));
  });

  it('may have two rows of one listener, which are counted together', () => {
    const rows = (...bytes: readonly number[]): Reported => {
      const [row] = heartbeat(0.1).runtime_listeners;
      return { ...heartbeat(0.1), runtime_listeners: bytes.map((bytes_in) => ({ ...row!, bytes_in })) };
    };
    const shown = () => [
      reports.listeners('n1')?.listeners.map(({ bytes_in }) => bytes_in),
      reports.traffic('n1').bytes_in,
      reports.activity().last_5m.bytes_in,
    ];
    beat(rows(1, 2));
    expect(shown()).toEqual([[1, 2], 3, 0]);
    beat(rows(3, 4));
    expect(shown()).toEqual([[3, 4], 7, 4]);
    // The first row also shows what the process before has counted.
    beat({ ...rows(1, 1), process_id: 'aa' });
    expect(shown()).toEqual([[8, 1], 9, 6]);
  });

  it('replaces an older one of its node that waits to be written', async () => {
    for (let round = 0; round < 100; round += 1) beat(heartbeat(round / 100));
    await reports.flush();
    expect(opened.writes.get('node_beats')).toBe(1);
    expect(await stored('node_beats')).toMatchObject({ beat: { cpu: 0.99 } });
  });

  it('waits while the read store is away, the newest of each node only', async () => {
    opened.away = true;
    beat(heartbeat(0.1));
    await expect(reports.flush()).rejects.toThrow('away');
    beat(heartbeat(0.2));
    expect(reports.vitals('n1').cpu_usage).toBe(0.2);
    opened.away = false;
    await reports.flush();
    expect(await stored('node_beats')).toMatchObject({ beat: { cpu: 0.2 } });
    expect(opened.writes.get('node_beats')).toBe(1);
  });

  it('is known after a restart, with everything else', async () => {
    beat({ ...heartbeat(0.1), link_metrics: [link] });
    reports.metrics('n1', nothingMeasured, processNamed('aa'));
    const shown = [reports.listeners('n1'), reports.links('n1'), reports.reportedMetrics('n1'), reports.vitals('n1')];
    await reports.close();
    reports = await opened.alone();
    expect([reports.listeners('n1'), reports.links('n1'), reports.reportedMetrics('n1'), reports.vitals('n1')]).toEqual(
      shown,
    );
    expect(reports.presence('n1')).toBeUndefined();
  });

  it('is known after its store was emptied, written again, and gives way to what the store has by then', async () => {
    beat({ ...heartbeat(0.1), link_metrics: [link] });
    reports.metrics('n1', nothingMeasured, processNamed('aa'));
    reports.alive('n2', presenceOf('t'), 30_000, heartbeatFactsOf(heartbeat(0.3)));
    await reports.flush();
    const shown = () => [
      reports.listeners('n1'),
      reports.links('n1'),
      reports.reportedMetrics('n1'),
      reports.vitals('n1'),
    ];
    const before = shown();
    const written = await stored('node_listeners');
    const lost = reports;
    await lost.close();
    await (await opened.alone()).forget(['n1']);
    opened.writes.clear();
    reports = await opened.alone(lost.known());
    expect(shown()).toEqual(before);
    expect(reports.presence('n1')).toBeUndefined();
    expect(await stored('node_listeners')).toEqual(written);
    expect(Object.fromEntries(opened.writes)).toEqual({
      node_beats: 1,
      node_listeners: 1,
      node_links: 1,
      node_metrics: 1,
    });
  });

  it('and any other sign of life is when its node was last seen', () => {
    const seenAt = () => reports.vitals('n1').last_seen_at;
    beat(heartbeat(0.1));
    opened.clock.advance(1_000);
    reports.alive('n1', presenceOf('s'), 30_000);
    expect(seenAt()).toBe('2025-01-01T00:00:01.000Z');
    expect(reports.listeners('n1')?.reported_at).toBe('2025-01-01T00:00:00.000Z');
  });
});

describe('reads', () => {
  it('ask no store, whatever is asked', async () => {
    beat({ ...heartbeat(0.1), link_metrics: [{ ...link, loss_ratio: 0.5 }] });
    reports.metrics('n1', nothingMeasured, processNamed(''));
    await reports.flush();
    opened.reads.clear();
    expect(reports.listeners('n1')?.listeners).toEqual(heartbeat(0.1).runtime_listeners);
    expect(reports.links('n1')?.links).toEqual([{ ...link, loss_ratio: 0.5 }]);
    expect(reports.lossyLinks('n1')?.links).toHaveLength(1);
    expect([reports.vitals('n1'), reports.traffic('n1'), reports.listenerStates('n1')]).not.toContain(undefined);
    for (const unknown of ['n2', '']) {
      expect([reports.listeners(unknown), reports.links(unknown), reports.reportedMetrics(unknown)]).toEqual([
        undefined,
        undefined,
        undefined,
      ]);
    }
    expect(opened.reads.size).toBe(0);
  });

  it('give the same states for as long as nothing has changed in them', () => {
    const statesOf = (facts: Reported) => {
      beat(facts);
      return reports.listenerStates('n1')?.states;
    };
    const first = statesOf(heartbeat(0.1));
    const [row] = heartbeat(0.1).runtime_listeners;
    expect(statesOf({ ...heartbeat(0.1), runtime_listeners: [{ ...row!, bytes_in: 8 }] })).toBe(first);
    expect(statesOf(heartbeat(0.1, 'failed'))).not.toBe(first);
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

  it('are the last report, with the time of the report that changed the health of each upstream', () => {
    const since = (report: MetricsFacts) => {
      reports.metrics('n1', report, processNamed(''));
      opened.clock.advance(1000);
      const reported = reports.reportedMetrics('n1');
      expect(reported?.report).toEqual(report);
      return reported?.health_since;
    };
    const [first, , third, fourth] = [0, 1, 2, 3].map((second) => `2025-01-01T00:00:0${second}.000Z`);
    const both = since(upstreams(true, false));
    expect(both).toEqual({ u0: first, u1: first });
    expect(since(upstreams(true, false))).toBe(both);
    expect(since(upstreams(true, true))).toEqual({ u0: first, u1: third });
    expect(since(upstreams(false))).toEqual({ u0: fourth });
  });
});

describe('a node that is deleted', () => {
  const expectNothingStored = async (): Promise<void> => {
    for (const name of ['node_beats', 'node_listeners', 'node_links', 'node_metrics']) {
      expect([name, await stored(name)]).toEqual([name, undefined]);
    }
  };

  it('is forgotten in memory and in every collection, with what waited to be written', async () => {
    reports.alive('n1', presenceOf('s'), 30_000);
    beat({ ...heartbeat(0.1), link_metrics: [link] });
    reports.metrics('n1', nothingMeasured, processNamed(''));
    await reports.flush();
    beat(heartbeat(0.2));
    await reports.forget(['n1']);
    await reports.flush();
    expect(reports.listeners('n1')).toBeUndefined();
    await expectNothingStored();
  });

  it('while its session ends leaves nothing behind', async () => {
    await reports.sessionOpened('n1', presenceOf('s'), 30_000);
    await reports.flush();
    const ending = reports.sessionEnded('n1', 's');
    await reports.forget(['n1']);
    await ending;
    await reports.flush();
    await expectNothingStored();
  });

  it('while its reports are written leaves nothing behind', async () => {
    reports.metrics('n1', nothingMeasured, processNamed(''));
    beat(heartbeat(0.1));
    opened.beforeWrite = async (collection) => {
      if (collection === 'node_beats') await reports.forget(['n1']);
    };
    await reports.flush();
    await expectNothingStored();
  });

  it('is forgotten at the next start when its reports could not be deleted with it', async () => {
    reports.metrics('n1', nothingMeasured, processNamed(''));
    beat(heartbeat(0.1));
    await reports.close();
    opened.gone.add('n1');
    opened.clock.advance(3_600_000);
    reports = await opened.alone();
    expect([...reports.known()]).toEqual([]);
    await expectNothingStored();
  });
});

describe('counters of listeners and links', () => {
  const reported = (process_id: string, bytes: number, ...more: readonly number[]): HeartbeatFacts =>
    heartbeatFactsOf({
      ...heartbeat(0.1),
      process_id,
      link_metrics: [{ ...link, bytes_in: bytes }],
      runtime_listeners: [bytes, ...more].map((bytes_in, index) =>
        runningListener(443 + index, { bytes_in, total_sessions: 1 }),
      ),
    });
  const tell = (...of: Parameters<typeof reported>): void =>
    reports.alive('n1', presenceOf('s'), 30_000, reported(...of));
  const shown = () => ({
    listeners: reports.listeners('n1')?.listeners.map(({ bytes_in }) => bytes_in),
    links: reports.links('n1')?.links.map(({ bytes_in }) => bytes_in),
    traffic: reports.traffic('n1').bytes_in,
  });

  it('go on over a restart of the agent, and of the instance', async () => {
    tell('aa', 70);
    expect(shown()).toEqual({ listeners: [70], links: [70], traffic: 70 });
    tell('bb', 80);
    expect(shown()).toEqual({ listeners: [150], links: [150], traffic: 150 });
    await reports.close();
    reports = await opened.alone();
    tell('bb', 85);
    expect(shown()).toEqual({ listeners: [155], links: [155], traffic: 155 });
    tell('cc', 0);
    expect(shown()).toEqual({ listeners: [155], links: [155], traffic: 155 });
  });

  it('go on when the instance is killed before it has read what was stored', async () => {
    tell('aa', 70);
    tell('bb', 80);
    await reports.close();
    let goOn = (): void => undefined;
    opened.readsHeld = new Promise((resolve) => (goOn = resolve));
    const killed = await opened.alone();
    await killed.sessionOpened('n1', presenceOf('s2'), 30_000);
    killed.alive('n1', presenceOf('s2'), 30_000, reported('bb', 85));
    // Its sign of life is stored after that.
    await vi.waitUntil(async () => (await stored('node_beats'))?.['presence'] !== null, { timeout: 20_000 });
    opened.dead.add('one');
    goOn();
    await killed.close();
    opened.dead.clear();
    opened.readsHeld = undefined;
    reports = await opened.alone();
    expect(shown()).toMatchObject({ traffic: 150 });
    tell('bb', 90);
    expect(shown()).toMatchObject({ traffic: 160 });
  });

  it('of an agent that does not name its process go on when they fall', () => {
    for (const bytes of [70, 5, 6]) tell('', bytes);
    expect(shown()).toEqual({ listeners: [76], links: [76], traffic: 76 });
  });

  it('of a listener that is closed are kept for the totals', () => {
    tell('aa', 70, 30);
    expect(shown()).toEqual({ listeners: [70, 30], links: [70], traffic: 100 });
    tell('aa', 71);
    expect(shown()).toEqual({ listeners: [71], links: [71], traffic: 101 });
    tell('aa', 71, 31);
    expect(shown()).toEqual({ listeners: [71, 31], links: [71], traffic: 102 });
  });
});

describe('the traffic of metrics reports', () => {
  const report = (accepted: number): MetricsFacts => ({
    connections: { active: 0, accepted, closed: 0, failed: 0, handshake_failures: 0 },
    bandwidth: null,
    gateway: null,
  });
  const accepted = async (): Promise<number | undefined> => {
    const [connections] = reports.trafficMetrics();
    return (await connections?.get())?.values.find(({ labels }) => labels['event'] === 'accepted')?.value;
  };
  const tell = (count: number, process: string): void => reports.metrics('n1', report(count), processNamed(process));

  it('is counted from 0 for each process, and from its last report for one that is stored', async () => {
    tell(7, 'aa');
    expect(await accepted()).toBe(7);
    tell(10, 'aa');
    expect(await accepted()).toBe(10);
    tell(12, 'bb');
    expect(await accepted()).toBe(22);
    await reports.close();
    reports = await opened.alone();
    tell(15, 'bb');
    expect(await accepted()).toBe(3);
  });
});

describe('the connections and upstreams of now', () => {
  const shown = async (): Promise<readonly (number | undefined)[]> => {
    const metrics = await Promise.all(reports.trafficMetrics().map((metric) => metric.get()));
    const of = (name: string) => metrics.find((metric) => metric.name === name)?.values.map(({ value }) => value) ?? [];
    return [...of('svc_node_connections'), ...of('svc_node_upstreams')];
  };
  const tell = (nodeId: string, active: number, healthy: readonly boolean[]): void => {
    const connections = { active, accepted: 0, closed: 0, failed: 0, handshake_failures: 0 };
    const upstreams = healthy.map((one) => ({ cluster: '', requests: 0, errors: 0, healthy: one, latency_p99_ms: 0 }));
    const gateway = { requests: 0, errors: 0, worker_restarts: 0, latency_p50_ms: 0, latency_p99_ms: 0, upstreams };
    reports.metrics(nodeId, { connections, bandwidth: null, gateway }, processNamed('aa'));
  };

  it('are those of the last reports of the agents with a session, also of one that has renewed its session', async () => {
    for (const nodeId of ['n1', 'n2']) await reports.sessionOpened(nodeId, presenceOf(nodeId), 30_000);
    tell('n1', 2, [false]);
    tell('n1', 3, [true, false, true]);
    tell('n2', 40, [true]);
    expect(await shown()).toEqual([43, 3, 1]);
    await reports.sessionOpened('n1', presenceOf('next'), 30_000);
    await reports.sessionEnded('n1', 'n1');
    await reports.sessionEnded('n2', 'n2');
    expect(await shown()).toEqual([3, 2, 1]);
    await reports.sessionEnded('n1', 'next');
    expect(await shown()).toEqual([0, 0, 0]);
  });
});

describe('bytes that no link can have carried', () => {
  const most = Number.MAX_SAFE_INTEGER;
  const carried = (bytes_in: number, uptime_seconds = 10): Reported => {
    const [row] = heartbeat(0.25).runtime_listeners;
    return {
      ...heartbeat(0.5),
      uptime_seconds,
      runtime_listeners: [{ ...row!, bytes_in }],
      link_metrics: [{ ...link, bytes_in }],
    };
  };
  const told = () => [reports.traffic('n1').bytes_in, reports.links('n1')?.links[0]?.bytes_in];
  const refused = async () => {
    const { values } = await reports.trafficMetrics().at(-1)!.get();
    return values[0]?.value;
  };

  it('are left out of a heartbeat, whose other contents count, and are counted as refused', async () => {
    beat(carried(7));
    opened.clock.advance(10_000);
    beat({ ...carried(most), cpu_usage: 0.75 });
    expect(told()).toEqual([7, 7]);
    expect(reports.vitals('n1').cpu_usage).toBe(0.75);
    expect(await refused()).toBe(1);
    opened.clock.advance(10_000);
    beat(carried(9));
    expect(told()).toEqual([9, 9]);
    expect(await refused()).toBe(1);
  });

  it('are those of more than a terabit a second since the last report, or since the process began', async () => {
    const perSecond = 1e12 / 8;
    beat(carried(10 * perSecond));
    expect(told()).toEqual([10 * perSecond, 10 * perSecond]);
    opened.clock.advance(2_000);
    beat(carried(12 * perSecond));
    opened.clock.advance(2_000);
    beat(carried(14 * perSecond + 1));
    expect(told()).toEqual([12 * perSecond, 12 * perSecond]);
    opened.clock.advance(2_000);
    beat({ ...carried(most, 5), ...processNamed('another') });
    expect(told()).toEqual([12 * perSecond, 12 * perSecond]);
    expect(await refused()).toBe(2);
  });

  it('are those of a total above 2^60, however long the process has run', async () => {
    beat(carried(2 ** 60 + 2 ** 10, 1e9));
    expect(told()).toEqual([0, 0]);
    beat({ ...carried(2 ** 60, 1e9), ...processNamed('another') });
    expect(told()).toEqual([most, most]);
    const bandwidth = BandwidthMetrics.fromPartial({ bytesOut: 2n ** 60n + 1n });
    reports.metrics('n1', metricsFacts(MetricsReport.fromPartial({ bandwidth })), processNamed('another'));
    expect(reports.reportedMetrics('n1')?.report.bandwidth).toBeNull();
    expect(await refused()).toBe(2);
  });

  it('are left out of a metrics report', async () => {
    const report = (bytes_in: number): MetricsFacts => ({
      ...nothingMeasured,
      bandwidth: { bytes_in, bytes_out: 0, bits_in_per_second: 0, bits_out_per_second: 0, listeners: [] },
    });
    beat(carried(7));
    for (const [bytes, shown] of [
      [5, 5],
      [most, 5],
      [6, 6],
    ] as const) {
      opened.clock.advance(10_000);
      reports.metrics('n1', report(bytes), processNamed('p'));
      expect(reports.reportedMetrics('n1')?.report.bandwidth?.bytes_in).toBe(shown);
    }
    expect(await refused()).toBe(1);
  });
});

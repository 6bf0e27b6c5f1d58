/** The last hour in points of a minute (decision 571), against exact sums, and on an instance that did not take the reports. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { keepMinutes } from '../../src/reports/history/minutes.js';
import { fleetSeries, minuteMs, type Point } from '../../src/reports/history/points.js';
import type { Carriers, PresenceFacts } from '../../src/reports/port.js';
import type { ReportsService } from '../../src/reports/reports.js';
import { createManualClock } from '../support/manual-clock.js';
import { openedReports } from '../support/opened-reports.js';
import { heartbeatFactsOf, linkOfChain, processNamed, runningListener } from '../support/reported-tables.js';

const start = Date.parse('2026-03-01T00:00:00Z');
const counters = ['bytes_in', 'bytes_out', 'sessions', 'errors', 'online_ms', 'rtt_us'] as const;

it('has what was counted in each of the last sixty minutes, to seven digits, whatever the clock does', () => {
  const amount = fc.oneof(fc.nat(9), fc.nat(2_000), fc.nat(2 ** 40));
  const id = fc.constantFrom('a', 'b', 'c', fleetSeries);
  const step = fc.record({
    forwardMs: fc.oneof(fc.nat(minuteMs), fc.nat(minuteMs), fc.nat(70 * minuteMs), fc.constant(-3 * minuteMs)),
    id,
    growth: fc.record({ bytes_in: amount, bytes_out: amount, sessions: amount, errors: fc.nat(9) }),
    online: fc.record({ agoMs: fc.oneof(fc.nat(3 * minuteMs), fc.nat(90 * minuteMs)), online_ms: fc.nat(3_000) }),
    rtt: fc.record({ id, us: fc.integer({ min: 1, max: 400_000 }) }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const clock = createManualClock(start);
      const minutes = keepMinutes(clock);
      expect(minutes.since).toBe(start);
      let exact = new Map<string, Map<number, Point>>();
      let last = start / minuteMs;
      const zero: Point = { bytes_in: 0, bytes_out: 0, sessions: 0, errors: 0, online_ms: 0, rtt_us: 0, rtts: 0 };
      const pointOf = (of: string, minute: number): Point => {
        const points = exact.get(of) ?? new Map<number, Point>();
        const point = points.get(minute) ?? { ...zero };
        exact.set(of, points.set(minute, point));
        return point;
      };
      for (const { forwardMs, id: of, growth, online, rtt } of steps) {
        clock.advance(forwardMs);
        const now = Math.floor(clock.now() / minuteMs);
        // Set back by more than a minute, it begins anew.
        if (now < last - 1) exact = new Map();
        last = now < last - 1 ? now : Math.max(last, now);
        minutes.count(of, clock.now(), growth);
        minutes.roundTrip(rtt.id, rtt.us);
        const current = pointOf(of, of === fleetSeries ? now : last);
        for (const name of ['bytes_in', 'bytes_out', 'sessions', 'errors'] as const) current[name] += growth[name];
        Object.assign(pointOf(rtt.id, last), { rtt_us: rtt.us, rtts: 1 });
        const at = clock.now() - online.agoMs;
        minutes.count(of, at, { online_ms: online.online_ms });
        const minute = Math.floor(at / minuteMs);
        // A minute that was over before the resource was known has no room for it.
        const isKept = minute > last - 60 && (minutes.read(of).get(minute)?.online_ms ?? 0) > 0;
        if (isKept)
          pointOf(of, minute).online_ms = Math.min(minuteMs, pointOf(of, minute).online_ms + online.online_ms);
      }
      for (const of of ['a', 'b', 'c', fleetSeries]) {
        const wanted = [...(exact.get(of) ?? [])].filter(([minute, point]) => {
          return minute > last - 60 && counters.some((name) => point[name] > 0);
        });
        const told = [...minutes.read(of)].filter(([, point]) => counters.some((name) => point[name] > 0));
        const found = new Map(told);
        expect([...found.keys()].toSorted()).toEqual(wanted.map(([minute]) => minute).toSorted());
        for (const [minute, point] of wanted) {
          for (const name of counters) {
            const value = found.get(minute)?.[name] ?? 0;
            const isExact = of === fleetSeries || minute === last || point[name] <= 2 ** 24;
            if (isExact) expect([name, value]).toEqual([name, point[name]]);
            else expect(Math.abs(value - point[name])).toBeLessThanOrEqual(point[name] / 2 ** 24);
          }
        }
      }
    }),
  );
});

it('is the same at an instance that has no session of the node', async () => {
  const [node, chain, upstream] = ['n1', 'c1', 'u1'];
  const carried: Carriers = {
    chains: new Set([chain]),
    ends: new Map([[chain, [chain, upstream]]]),
    chainOfListener: new Map([['tcp/0.0.0.0/443', chain]]),
    begins: new Set(['tcp/0.0.0.0/443']),
    upstreams: new Set([upstream]),
  };
  const opened = await openedReports(start, () => carried);
  const [holds, reads] = [await opened.oneOfSeveral('holds'), await opened.oneOfSeveral('reads')];
  const presence: PresenceFacts = { session_id: 's', instance_id: 'holds', pushed_generation: 0, pushed_at: null };
  const beat = async (process_id: string, bytes: number, sessions: number): Promise<void> => {
    const measured = { rtt_ms: 2.5, bytes_in: 3 * bytes, bytes_out: bytes };
    const link = linkOfChain(chain, { peer_endpoint: '192.0.2.2:443', ...measured });
    const counted = { bytes_in: bytes, bytes_out: 3 * bytes, total_sessions: sessions, error_sessions: 1 };
    const tables = { link_metrics: [link], runtime_listeners: [runningListener(443, counted)] };
    const figures = { process_id, cpu_usage: 0, memory_usage: 0, uptime_seconds: 9 };
    holds.alive(node, presence, 30_000, heartbeatFactsOf({ ...figures, ...tables }));
    const upstreams = [{ cluster: upstream, requests: sessions, errors: 0, healthy: true, latency_p99_ms: 1 }];
    const gateway = { requests: 0, errors: 0, worker_restarts: 0, latency_p50_ms: 0, latency_p99_ms: 0, upstreams };
    holds.metrics(node, { connections: null, bandwidth: null, gateway }, processNamed(process_id));
    await holds.flush();
    await reads.flush();
  };
  try {
    await holds.sessionOpened(node, presence, 30_000);
    // Only its own instance knows what the first report of a node covers.
    await beat('aa', 100, 5);
    const of = async (reports: ReportsService, id: string) =>
      [...((await reports.history(id, '1m', 0)).get(id) ?? [])].filter(([minute]) => minute > start / minuteMs);
    for (const [process, bytes, sessions] of [
      ['aa', 100, 5],
      ['aa', 350, 9],
      ['bb', 70, 2],
      ['bb', 90, 2],
      ['aa', 20, 1],
    ] as const) {
      for (const seconds of [20, 20, 20]) {
        opened.clock.advance(seconds * 1_000);
        await beat(process, bytes, sessions);
      }
    }
    for (const id of [node, chain, upstream, fleetSeries]) {
      const known = await of(holds, id);
      expect(known.map(([, { bytes_in }]) => bytes_in)).toEqual([250, 70, 20, 20, 0]);
      expect([id, await of(reads, id)]).toEqual([id, known]);
    }
    // So is the traffic of a listener now.
    const rate = holds.listenerRate(node, 'tcp/0.0.0.0/443');
    expect(rate?.bytes_per_sec).toBeGreaterThan(0);
    expect(reads.listenerRate(node, 'tcp/0.0.0.0/443')).toEqual(rate);
  } finally {
    await opened.close();
  }
});

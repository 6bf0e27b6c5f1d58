/**
 * For whom reports of a node are counted in history: the node itself, the chains that begin on it, and the upstreams that it
 * dials. Everything is counted as clients see it: `bytes_in` comes from them. Implements decision 360.
 */
import type { Share } from './history.js';
import type { Growth } from './points.js';
import { slotMs } from './points.js';
import type { Carriers, MetricsFacts } from '../port.js';
import type { Counters } from '../process-totals.js';
import { growthOf } from '../process-totals.js';

/** Nothing where no counter has grown. */
const sharesOf = (ids: readonly string[], growth: Growth): readonly Share[] =>
  Object.values(growth).some((more) => more > 0) ? ids.map((id) => [id, growth] as const) : [];

/** The growth of a listener: of its node, and in sessions of the only chain that begins there. */
export function listenerShares(carriers: Carriers, key: string, growth: Counters, nodeId: string): readonly Share[] {
  const { bytes_in = 0, bytes_out = 0, total_sessions: sessions = 0, error_sessions: errors = 0 } = growth;
  const chain = carriers.chainOfListener.get(key);
  return [
    ...sharesOf([nodeId], { bytes_in, bytes_out, sessions, errors }),
    ...sharesOf(chain === undefined ? [] : [chain], { sessions, errors }),
  ];
}

/** The growth of a link: what a node sends to the next hop came from clients. */
export function linkShares(carriers: Carriers, key: string, growth: Counters): readonly Share[] {
  const ids = carriers.ends.get(resourceOf(key)) ?? [];
  return sharesOf(ids, { bytes_in: growth['bytes_out'] ?? 0, bytes_out: growth['bytes_in'] ?? 0 });
}

/** The second part of a link's key, see `reported.ts`. */
const resourceOf = (key: string): string => key.split('/', 2)[1] ?? '';

/** The growth of metrics: of upstreams, in sessions. @param before the report before it of the same process */
export function metricsShares(
  carriers: Carriers,
  report: MetricsFacts,
  before: MetricsFacts | undefined,
): readonly Share[] {
  const earlier = new Map(before?.gateway?.upstreams.map((upstream) => [upstream.cluster, upstream]));
  return (report.gateway?.upstreams ?? []).flatMap(({ cluster, requests, errors }) => {
    if (!carriers.upstreams.has(cluster)) return [];
    const known = earlier.get(cluster);
    const [sessions, failed] = [growthOf(known?.requests, requests), growthOf(known?.errors, errors)];
    return sharesOf([cluster], { sessions, errors: failed });
  });
}

/** The time from one heartbeat to the next by the slots that it is in: when each piece begins, and its milliseconds. */
export function* piecesOf(since: number, until: number): Generator<readonly [at: number, ms: number]> {
  for (let from = since; from < until;) {
    const end = Math.min(until, (Math.floor(from / slotMs) + 1) * slotMs);
    yield [from, end - from];
    from = end;
  }
}

/** The round-trip times of a heartbeat, by link in milliseconds: the longest of each resource. */
export function roundTripShares(
  carriers: Carriers,
  nodeId: string,
  roundTrips: readonly (readonly [key: string, ms: number])[],
): Iterable<Share> {
  const longest = new Map<string, { readonly rtt_us: number; readonly rtts: 1 }>();
  const note = (id: string, rtt_us: number): void => {
    if (rtt_us >= (longest.get(id)?.rtt_us ?? 0)) longest.set(id, { rtt_us, rtts: 1 });
  };
  for (const [key, ms] of roundTrips) {
    const us = Math.round(Math.max(0, ms) * 1000);
    note(nodeId, us);
    const id = resourceOf(key);
    if (carriers.chains.has(id)) note(id, us);
    for (const end of carriers.ends.get(id) ?? []) note(end, us);
  }
  return longest;
}

/**
 * Credits the reports of a node in history to the node itself, the chains that begin on it, and the upstreams that it dials.
 * Directions are the client's: `bytes_in` comes from clients. Implements decision 360.
 */
import type { Share } from './history.js';
import { minuteMs, type Growth } from './points.js';
import { countersAt, linkCounters, listenerCounters, sumOfRows, type CountedRows } from '../counted-rows.js';
import type { Carriers, MetricsFacts, RoundTrip } from '../port.js';
import { growthOf } from '../process-totals.js';

/** Empty if no counter has grown. */
const sharesOf = (ids: readonly string[], growth: Growth): readonly Share[] =>
  Object.values(growth).some((more) => more > 0) ? ids.map((id) => [id, growth] as const) : [];

/** The growth of listeners, credited to their node, and its sessions to a chain that has the listener to itself. */
export function listenerShares({ chainOfListener }: Carriers, growth: CountedRows, nodeId: string): readonly Share[] {
  const { bytes_in, bytes_out, total_sessions, error_sessions } = sumOfRows(listenerCounters, growth);
  const ofNode = sharesOf([nodeId], { bytes_in, bytes_out, sessions: total_sessions, errors: error_sessions });
  if (chainOfListener.size === 0) return ofNode;
  const ofChains = growth.keys.flatMap((key, row) => {
    const chain = chainOfListener.get(key);
    if (chain === undefined) return [];
    const { total_sessions: sessions = 0, error_sessions: errors = 0 } = countersAt(
      listenerCounters,
      growth.values,
      row,
    );
    return sharesOf([chain], { sessions, errors });
  });
  return [...ofChains, ...ofNode];
}

/** The growth of links. A node sends to the next hop what came from clients. */
export function linkShares(carriers: Carriers, { keys, values }: CountedRows): readonly Share[] {
  return keys.flatMap((key, row) => {
    const { bytes_in = 0, bytes_out = 0 } = countersAt(linkCounters, values, row);
    return sharesOf(carriers.ends.get(resourceOf(key)) ?? [], { bytes_in: bytes_out, bytes_out: bytes_in });
  });
}

/** The second part of a link's key, see `linkKey`. */
const resourceOf = (key: string): string => key.split('/', 2)[1] ?? '';

/** The growth of upstreams in sessions. @param before the previous report of the same process */
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

/** Splits the time between two heartbeats at the minutes, and so at the slots: the start and length of each piece. */
export function* piecesOf(since: number, until: number): Generator<readonly [at: number, ms: number]> {
  for (let from = since; from < until;) {
    const end = Math.min(until, (Math.floor(from / minuteMs) + 1) * minuteMs);
    yield [from, end - from];
    from = end;
  }
}

/** The longest round trip of each resource in a heartbeat. @param roundTrips of links, by resource */
export function roundTripShares(carriers: Carriers, nodeId: string, roundTrips: readonly RoundTrip[]): Iterable<Share> {
  const longest = new Map<string, { readonly rtt_us: number; readonly rtts: 1 }>();
  const note = (id: string, rtt_us: number): void => {
    if (rtt_us >= (longest.get(id)?.rtt_us ?? 0)) longest.set(id, { rtt_us, rtts: 1 });
  };
  for (const [id, ms] of roundTrips) {
    const us = Math.round(Math.max(0, ms) * 1000);
    note(nodeId, us);
    if (carriers.chains.has(id)) note(id, us);
    for (const end of carriers.ends.get(id) ?? []) note(end, us);
  }
  return longest;
}

/**
 * For whom reports of a node are counted in history: the node itself, the chains that begin on it, and the upstreams that it
 * dials. Everything is counted as clients see it: `bytes_in` comes from them. Implements decision 360.
 */
import type { OpenSlot, Point } from './history-points.js';
import { counting, slotMs } from './history-points.js';
import type { Carriers, HeartbeatFacts, MetricsFacts } from './port.js';
import type { Counters } from './process-totals.js';
import { growthOf } from './process-totals.js';

type Share = readonly [resourceId: string, point: Point];

/** Without the counters that have not grown. */
function pointOf(values: { readonly [C in keyof Point]?: number | undefined }): Point {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined && value > 0));
}

const sharesOf = (ids: readonly string[], point: Point): readonly Share[] =>
  Object.keys(point).length === 0 ? [] : ids.map((id) => [id, point] as const);

/** The growth of a listener: of its node, and in sessions of the only chain that begins there. */
export function listenerShares(carriers: Carriers, nodeId: string, key: string, growth: Counters): readonly Share[] {
  const { bytes_in, bytes_out, total_sessions: sessions, error_sessions: errors } = growth;
  const chain = carriers.chainOfListener.get(key);
  return [
    ...sharesOf([nodeId], pointOf({ bytes_in, bytes_out, sessions, errors })),
    ...sharesOf(chain === undefined ? [] : [chain], pointOf({ sessions, errors })),
  ];
}

/** The growth of a link: what a node sends to the next hop came from clients. */
export function linkShares(carriers: Carriers, key: string, growth: Counters): readonly Share[] {
  const ids = carriers.ends.get(resourceOf(key)) ?? [];
  return sharesOf(ids, pointOf({ bytes_in: growth['bytes_out'], bytes_out: growth['bytes_in'] }));
}

/** The second part of a link's key, see `reported.ts`. */
const resourceOf = (key: string): string => key.split('/', 2)[1] ?? '';

/** The growth of metrics: of upstreams, in sessions. @param before the report before it of the same process */
export function metricsShares(carriers: Carriers, report: MetricsFacts, before: MetricsFacts | undefined) {
  const earlier = new Map(before?.gateway?.upstreams.map((upstream) => [upstream.cluster, upstream]));
  return new Map(
    (report.gateway?.upstreams ?? []).flatMap(({ cluster, requests, errors }) => {
      if (!carriers.upstreams.has(cluster)) return [];
      const known = earlier.get(cluster);
      const point = pointOf({
        sessions: growthOf(known?.requests, requests),
        errors: growthOf(known?.errors, errors),
      });
      return sharesOf([cluster], point);
    }),
  );
}

/** The last heartbeat of a node that was counted. */
export interface CountedBeat {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly open: OpenSlot | undefined;
}

/**
 * Counts a heartbeat: the node was online since the one before, and its links have round-trip times, the longest of each
 * resource.
 * @param offlineAfterMs a node without a heartbeat for longer was offline in between
 */
export function countBeat(
  carriers: Carriers,
  nodeId: string,
  beat: { readonly at: number; readonly facts: HeartbeatFacts; readonly offlineAfterMs: number },
  last: CountedBeat | undefined,
): { readonly open: OpenSlot; readonly over: readonly OpenSlot[] } {
  const { at } = beat;
  const since = last !== undefined && at - last.at <= beat.offlineAfterMs ? Math.min(last.at, at) : at;
  const begins = Math.floor(at / slotMs) * slotMs;
  const online = (ms: number): ReadonlyMap<string, Point> => new Map(sharesOf([nodeId], pointOf({ online_ms: ms })));
  let open = last?.open;
  const over: OpenSlot[] = [];
  const count = (time: number, more: ReadonlyMap<string, Point>): OpenSlot => {
    const next = counting(open, time, more);
    if (next.over !== undefined) over.push(next.over);
    open = next.open;
    return next.open;
  };
  for (let from = since; from < begins;) {
    const until = (Math.floor(from / slotMs) + 1) * slotMs;
    count(from, online(until - from));
    from = until;
  }
  count(at, online(at - Math.max(since, begins)));
  return { open: count(at, roundTrips(carriers, nodeId, beat.facts)), over };
}

function roundTrips(carriers: Carriers, nodeId: string, { link_metrics }: HeartbeatFacts): ReadonlyMap<string, Point> {
  const longest = new Map<string, Point>();
  const note = (id: string, rtt_us: number): void => {
    if (rtt_us >= (longest.get(id)?.rtt_us ?? 0)) longest.set(id, { rtt_us, rtts: 1 });
  };
  for (const [key, ms] of link_metrics.roundTripsMs()) {
    const us = Math.round(Math.max(0, ms) * 1000);
    note(nodeId, us);
    const id = resourceOf(key);
    if (carriers.chains.has(id)) note(id, us);
    for (const end of carriers.ends.get(id) ?? []) note(end, us);
  }
  return longest;
}

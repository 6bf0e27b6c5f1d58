/**
 * Records reports in history: those of this instance's sessions and, in minutes only, those that other instances took.
 * `counting.ts` says which resources a report is credited to. Implements decisions 360 and 571.
 */
import { yieldToEventLoop } from '../../kernel/background.js';
import type { Clock } from '../../kernel/clock.js';
import { linkSummary, growthBetween, type Entry, type HeartbeatGrowth } from '../entry.js';
import type { Carriers, MetricsFacts } from '../port.js';
import { tuning } from '../tuning.js';
import { linkShares, listenerShares, metricsShares, piecesOf, roundTripShares } from './counting.js';
import type { History, Share } from './history.js';
import { fleetSeries } from './points.js';

export interface CountedBeat {
  readonly entry: Entry;
  readonly growth: HeartbeatGrowth;
  /** When it arrived, and when the one before it did, milliseconds since the epoch. */
  readonly at: number;
  readonly last: number | undefined;
}

export type Recorder = ReturnType<typeof createRecorder>;

export function createRecorder(
  history: Pick<History, 'count' | 'countHere' | 'roundTrip'>,
  carriers: (nodeId: string) => Carriers,
  clock: Pick<Clock, 'now'>,
) {
  /** Counts the shares of a node, and the node's own share for the fleet as well. */
  function countShares(count: History['count'], nodeId: string, at: number, shares: readonly Share[]): void {
    count(nodeId, at, shares);
    for (const [id, growth] of shares) if (id === nodeId) count(fleetSeries, at, [[fleetSeries, growth]]);
  }

  function countBeat(count: History['count'], nodeId: string, { entry, growth, at, last }: CountedBeat): void {
    const carried = carriers(nodeId);
    const { listeners, links } = growth;
    if (listeners !== undefined) countShares(count, nodeId, at, listenerShares(carried, listeners, nodeId));
    if (links !== undefined) count(nodeId, at, linkShares(carried, links));
    // The node was online since its previous heartbeat, unless that is too long ago.
    if (last === undefined || at - last > entry.offlineAfterMs) return;
    for (const [from, online_ms] of piecesOf(last, at)) countShares(count, nodeId, from, [[nodeId, { online_ms }]]);
  }

  return {
    heartbeat(nodeId: string, beat: CountedBeat): void {
      countBeat(history.count, nodeId, beat);
      const trips = beat.entry.links === undefined ? [] : linkSummary(beat.entry.links).roundTrips;
      if (trips.length === 0) return;
      countShares(history.count, nodeId, beat.at, [...roundTripShares(carriers(nodeId), nodeId, trips)]);
    },
    /** @param before the previous report of the same process */
    metrics(nodeId: string, report: MetricsFacts, before: MetricsFacts | undefined): void {
      history.count(nodeId, clock.now(), metricsShares(carriers(nodeId), report, before));
    },
    /** A report that another instance took. @param before the entry as it was */
    taken(nodeId: string, entry: Entry, before: Readonly<Entry>): void {
      if (before.beat !== undefined && entry.beat !== undefined && entry.beat.at > before.beat.at) {
        const growth = growthBetween(before, entry);
        countBeat(history.countHere, nodeId, { entry, growth, at: entry.beat.at, last: before.beat.at });
      }
      const { metrics } = entry;
      if (metrics === undefined || before.metrics === undefined || metrics.at <= before.metrics.at) return;
      const last = metrics.process_id === before.metrics.process_id ? before.metrics.report : undefined;
      history.countHere(nodeId, clock.now(), metricsShares(carriers(nodeId), metrics.report, last));
    },
    /** Records the round trips of all nodes in the current minute. */
    async roundTrips(entries: Iterable<readonly [nodeId: string, Entry]>): Promise<void> {
      const longest = new Map<string, number>();
      let [looked, measured, sum] = [0, 0, 0];
      for (const [nodeId, { beat, links, offlineAfterMs }] of entries) {
        looked += 1;
        if (looked % tuning.judgedPerTurn === 0) await yieldToEventLoop();
        if (beat === undefined || links === undefined || clock.now() - beat.at > offlineAfterMs) continue;
        const carried = carriers(nodeId);
        for (const [id, { rtt_us = 0 }] of roundTripShares(carried, nodeId, linkSummary(links).roundTrips)) {
          const known = longest.get(id) ?? 0;
          // Traffic of a chain passes its links one after the other, so their round trips add up.
          longest.set(id, carried.chains.has(id) ? known + rtt_us : Math.max(known, rtt_us));
          if (id !== nodeId) continue;
          measured += 1;
          sum += rtt_us;
        }
      }
      for (const [id, us] of longest) history.roundTrip(id, us);
      if (measured > 0) history.roundTrip(fleetSeries, sum / measured);
    },
  };
}

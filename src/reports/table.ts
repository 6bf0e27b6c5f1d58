/**
 * The last reports of all nodes in memory. Every answer about nodes reads this table, and none reads a store. `reports.ts`
 * enters the reports of this instance's sessions, `others.ts` those of other instances. Facts of the log are in `facts.ts`.
 * Implements `docs/contract/agent-protocol.md#heartbeats-commands-metrics`.
 */
import { timestamp, type Clock } from '../kernel/clock.js';
import { createListeners } from '../kernel/listeners.js';
import { logsError, type Logger } from '../kernel/logger.js';
import { listenerCounters, sumOfRows } from './counted-rows.js';
import { Entry, linkSummary } from './entry.js';
import { rateOf } from './listener-rates.js';
import { activeSessions, countedOf, shapeSummary } from './listener-table.js';
import type { ReportedLinks, Reports, Traffic } from './port.js';
import { absentSums } from './process-totals.js';
import { lossyLinksIn, linksIn, listenersIn } from './reported.js';

export interface Table extends Omit<Reports, 'historySince' | 'history' | 'stale'> {
  /** Created if there is none. */
  entry(nodeId: string): Entry;
  find(nodeId: string): Entry | undefined;
  forget(nodeId: string): void;
  entries(): Iterable<readonly [nodeId: string, Entry]>;
  /** Tells listeners that the node's entry has changed. */
  notify(nodeId: string): void;
}

const emptyEntry: Entry = new Entry();

const noTraffic: Traffic = { bytes_in: 0, bytes_out: 0, active_sessions: 0, total_sessions: 0, error_sessions: 0 };

/** @param syncedAt monotonic time up to which signs of life at other instances are known */
export function createTable(syncedAt: () => number, { now }: Pick<Clock, 'now'>, logger: Logger): Table {
  const nodes = new Map<string, Entry>();
  const listeners = createListeners<string>(logsError(logger, 'a listener for reports of nodes failed'));
  const of = (nodeId: string): Entry => nodes.get(nodeId) ?? emptyEntry;

  const linksWith = (nodeId: string, read: typeof linksIn): ReportedLinks | undefined => {
    const { beat, links } = of(nodeId);
    if (beat === undefined) return undefined;
    return {
      reported_at: timestamp(beat.at),
      links: links === undefined ? [] : read(links.wire, links.totals.before),
    };
  };

  return {
    entry(nodeId) {
      let entry = nodes.get(nodeId);
      if (entry === undefined) nodes.set(nodeId, (entry = new Entry()));
      return entry;
    },
    find: (nodeId) => nodes.get(nodeId),
    forget(nodeId) {
      nodes.delete(nodeId);
      listeners.tell(nodeId);
    },
    entries: () => nodes,
    notify: listeners.tell,
    onReport: listeners.add,

    presence(nodeId) {
      const { presence } = of(nodeId);
      return presence !== undefined && presence.until >= syncedAt() ? presence.facts : undefined;
    },
    closedAt: (nodeId) => of(nodeId).closedAt,
    vitals(nodeId) {
      const { seenAt, beat } = of(nodeId);
      return {
        last_seen_at: seenAt === 0 ? null : timestamp(seenAt),
        cpu_usage: beat?.cpu ?? null,
        memory_usage: beat?.memory ?? null,
        uptime_seconds: beat?.uptime ?? null,
      };
    },
    listeners(nodeId) {
      const { beat, listeners } = of(nodeId);
      if (beat === undefined) return undefined;
      const rows = listeners === undefined ? [] : listenersIn(listeners.table, listeners.totals.before);
      return { reported_at: timestamp(beat.at), listeners: rows };
    },
    listenerStates(nodeId) {
      const { beat, listeners } = of(nodeId);
      if (beat === undefined || listeners === undefined) return undefined;
      const { states, routes } = shapeSummary(listeners.table.shape);
      return { reportedAt: timestamp(beat.at), runs: beat.runs, states, routes };
    },
    traffic(nodeId) {
      const { listeners } = of(nodeId);
      if (listeners === undefined) return noTraffic;
      const { table, totals } = listeners;
      const active = activeSessions(table).reduce((sum, sessions) => sum + (sessions || 0), 0);
      const [sums, gone] = [sumOfRows(listenerCounters, countedOf(table), totals.before), absentSums(totals)];
      const sum = (name: (typeof listenerCounters)[number]): number =>
        Math.min(sums[name] + (gone[name] ?? 0), Number.MAX_SAFE_INTEGER);
      return {
        bytes_in: sum('bytes_in'),
        bytes_out: sum('bytes_out'),
        active_sessions: Math.min(active, Number.MAX_SAFE_INTEGER),
        total_sessions: sum('total_sessions'),
        error_sessions: sum('error_sessions'),
      };
    },
    listenerRate: (nodeId, key) => rateOf(of(nodeId), key, now()),
    links: (nodeId) => linksWith(nodeId, linksIn),
    lossyLinks(nodeId) {
      const { links } = of(nodeId);
      return links !== undefined && linkSummary(links).isLossy ? linksWith(nodeId, lossyLinksIn) : undefined;
    },
    roundTrips(nodeId) {
      const { links } = of(nodeId);
      return links === undefined ? [] : linkSummary(links).roundTrips;
    },
    reportedMetrics(nodeId) {
      const { metrics } = of(nodeId);
      if (metrics === undefined) return undefined;
      const { at, report, health_since, runs_generation } = metrics;
      return { reported_at: timestamp(at), runs_generation, report, health_since };
    },
  };
}

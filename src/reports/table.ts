/**
 * What nodes told last, in memory, one entry each, whichever instance took it: every answer about nodes reads it, and none
 * reads a store. `reports.ts` enters what this instance's sessions tell, `others.ts` what other instances took. What agents
 * did as the log has it is in `facts.ts`. Implements `docs/contract/agent-protocol.md#heartbeats-commands-metrics`.
 */
import { timestamp } from '../kernel/clock.js';
import { errorText } from '../kernel/errors.js';
import { createListeners } from '../kernel/listeners.js';
import type { Logger } from '../kernel/logger.js';
import { listenerCounters, sumOfRows } from './counted-rows.js';
import type { Entry } from './entry.js';
import { EmptyEntry, outOfLinks } from './entry.js';
import { activeSessions, countedOf, outOf } from './listener-table.js';
import type { ReportedLinks, Reports, Traffic } from './port.js';
import { absentSums } from './process-totals.js';
import { lossyLinksIn, linksIn, listenersIn } from './reported.js';

export interface Table extends Omit<Reports, 'recordsHistory' | 'history' | 'stale'> {
  /** Made where there is none. */
  entry(nodeId: string): Entry;
  find(nodeId: string): Entry | undefined;
  forget(nodeId: string): void;
  entries(): Iterable<readonly [nodeId: string, Entry]>;
  /** The node's entry has changed. */
  told(nodeId: string): void;
}

const toldNothing: Entry = new EmptyEntry();

const noTraffic: Traffic = { bytes_in: 0, bytes_out: 0, active_sessions: 0, total_sessions: 0, error_sessions: 0 };

/** @param heardOf monotonic time up to which signs of life at other instances are known; their sessions count until then */
export function createTable(heardOf: () => number, logger: Logger): Table {
  const nodes = new Map<string, Entry>();
  const listeners = createListeners<string>((error) =>
    logger.error({ error: errorText(error) }, 'a listener for what nodes tell failed'),
  );
  const of = (nodeId: string): Entry => nodes.get(nodeId) ?? toldNothing;

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
      if (entry === undefined) nodes.set(nodeId, (entry = new EmptyEntry()));
      return entry;
    },
    find: (nodeId) => nodes.get(nodeId),
    forget(nodeId) {
      nodes.delete(nodeId);
      listeners.tell(nodeId);
    },
    entries: () => nodes,
    told: listeners.tell,
    onTold: listeners.add,

    presence(nodeId) {
      const { presence } = of(nodeId);
      return presence !== undefined && presence.until >= heardOf() ? presence.facts : undefined;
    },
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
      const { states, routes } = outOf(listeners.table.shape);
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
    links: (nodeId) => linksWith(nodeId, linksIn),
    lossyLinks(nodeId) {
      const { links } = of(nodeId);
      return links !== undefined && outOfLinks(links).isLossy ? linksWith(nodeId, lossyLinksIn) : undefined;
    },
    reportedMetrics(nodeId) {
      const { metrics } = of(nodeId);
      if (metrics === undefined) return undefined;
      const { at, report, healthSince, runs_generation } = metrics;
      return { reported_at: timestamp(at), runs_generation, report, health_since: healthSince };
    },
  };
}

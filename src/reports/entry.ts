/**
 * The last reports of one node, and how a heartbeat or a metrics report changes them. Links are kept as wire bytes with a
 * summary; listeners, which are larger, are in `listener-table.ts`. Pure: `table.ts` holds the entries of all nodes. Implements
 * `docs/contract/agent-protocol.md#heartbeats-commands-metrics`.
 */
import type { LinkMetric } from '../gen/svc/control/v1/heartbeat.js';
import { timestamp } from '../kernel/clock.js';
import {
  isPlausible,
  couldCarry,
  addReport,
  linkCounters,
  listenerCounters,
  noRows,
  packRows,
  type CountedRows,
} from './counted-rows.js';
import { countedOf, isSameTable, withCountersOf, type ListenerTable } from './listener-table.js';
import type { HeartbeatFacts, MetricsFacts, PresenceFacts, ReportingProcess, RoundTrip } from './port.js';
import { growthOf, noTotals, type ProcessTotals } from './process-totals.js';
import { isLossy, linkRow, linksOf, linksWithCountersOf, roundTrips } from './reported.js';

/** The live session of a node. */
export interface Presence {
  readonly facts: PresenceFacts;
  /** When it ends without another sign of life, in monotonic milliseconds; infinite for sessions of this instance. */
  readonly until: number;
}

/** The listeners of the last heartbeat. */
export interface LastListeners {
  readonly table: ListenerTable;
  readonly totals: ProcessTotals;
}

/** The links of the last heartbeat. */
export interface LastLinks {
  /** See `ReportedTable`. */
  readonly wire: Uint8Array;
  readonly totals: ProcessTotals;
  /** Undefined after a read from the store, until it is needed. */
  summary: LinkSummary | undefined;
}
interface LinkSummary {
  readonly counted: CountedRows;
  /** See `isLossy`. */
  readonly isLossy: boolean;
  readonly roundTrips: readonly RoundTrip[];
}

export interface Beat {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly runs: number | null;
  readonly cpu: number;
  readonly memory: number;
  readonly uptime: number;
}

export interface LastMetrics extends ReportingProcess {
  readonly at: number;
  readonly report: MetricsFacts;
  readonly health_since: { readonly [cluster: string]: string };
}

/** The parts of an entry that have a document of their own in the read store. */
export const partsOf = ['listeners', 'links', 'metrics'] as const;
export type Part = (typeof partsOf)[number];

const notWritten = { listeners: '', links: '', metrics: '' } as const;

/** The last reports of one node. A class, because there is one for each node: see `src/channel/noise/cipher-state.ts`. */
export class Entry {
  presence: Presence | undefined = undefined;
  /** How long a sign of life counts, in milliseconds. */
  offlineAfterMs = 0;
  /** When the last sign of life arrived, milliseconds since the epoch; 0 before one. */
  seenAt = 0;
  /** When the agent itself closed its last session, milliseconds since the epoch; 0 if it did not. */
  closedAt = 0;
  /** Whether a heartbeat has arrived in the current session. */
  hasReported = false;
  beat: Beat | undefined = undefined;
  listeners: LastListeners | undefined = undefined;
  links: LastLinks | undefined = undefined;
  metrics: LastMetrics | undefined = undefined;
  /**
   * By listener, `transport/address/port`: the time, bytes and sessions of each sample, oldest first. Undefined for a node where
   * no chain begins.
   */
  samples: Map<string, readonly number[]> | undefined = undefined;
  /** Which instance last wrote each part to the read store, and at which place, see `store.ts`. */
  written: { readonly [P in Part]: string } = notWritten;
}

/** The growth of the tables in one heartbeat. */
export interface HeartbeatGrowth {
  /** Undefined for a table that has not changed. */
  readonly listeners: CountedRows | undefined;
  readonly links: CountedRows | undefined;
  /** It counted more bytes than any link carries: its counters stay as they were, and everything else counts. */
  readonly refused: boolean;
}

/** Enters a heartbeat. @param at milliseconds since the epoch */
export function applyHeartbeat(entry: Entry, facts: HeartbeatFacts, at: number): HeartbeatGrowth {
  const { process_id, runtime_listeners, link_metrics, uptime_seconds } = facts;
  const { beat, listeners } = entry;
  const isSameProcess = beat !== undefined && listeners?.totals.processId === process_id;
  const sinceMs = isSameProcess ? at - beat.at : uptime_seconds * 1_000;
  entry.beat = {
    at,
    runs: facts.runs_generation,
    cpu: facts.cpu_usage,
    memory: facts.memory_usage,
    uptime: uptime_seconds,
  };
  let refused = false;
  const accept = (columns: number, growth: CountedRows): boolean => {
    const isAccepted = isPlausible(columns, growth, sinceMs);
    refused ||= !isAccepted;
    return isAccepted;
  };
  return {
    listeners: applyListeners(entry, runtime_listeners, process_id, accept),
    links: applyLinks(entry, link_metrics, process_id, accept),
    refused,
  };
}

/** Whether the counters of a table can be true. */
type Accept = (columns: number, growth: CountedRows) => boolean;

function applyListeners(
  entry: Entry,
  table: ListenerTable,
  processId: string,
  accept: Accept = () => true,
): CountedRows | undefined {
  const before = entry.listeners;
  const isSameProcess = before?.totals.processId === processId;
  if (isSameProcess && isSameTable(before.table, table)) return undefined;
  const last = before === undefined ? noRows : countedOf(before.table);
  const { totals, growth } = addReport(listenerCounters, before?.totals ?? noTotals, last, processId, countedOf(table));
  if (!accept(listenerCounters.length, growth)) {
    return applyListeners(entry, withCountersOf(isSameProcess ? last : noRows, table), processId);
  }
  entry.listeners = { table, totals };
  return growth;
}

function applyLinks(
  entry: Entry,
  { bytes, rows }: HeartbeatFacts['link_metrics'],
  processId: string,
  accept: Accept = () => true,
): CountedRows | undefined {
  const before = entry.links;
  const isSameProcess = before?.totals.processId === processId;
  if (isSameProcess && Buffer.compare(before.wire, bytes) === 0) return undefined;
  const last = before === undefined ? noRows : linkSummary(before).counted;
  const summary = summarizeLinks(rows(), last);
  const { totals, growth } = addReport(linkCounters, before?.totals ?? noTotals, last, processId, summary.counted);
  if (!accept(linkCounters.length, growth)) {
    return applyLinks(entry, linksWithCountersOf(isSameProcess ? last : noRows, rows()), processId);
  }
  entry.links = { wire: bytes, totals, summary };
  return growth;
}

/** The growth of the tables from one report of a node to a later one; undefined also for a table without an earlier one. */
export function growthBetween(before: Pick<Entry, 'listeners' | 'links'>, now: typeof before): HeartbeatGrowth {
  const listenersOf = ({ table }: LastListeners): CountedRows => countedOf(table);
  const linksOf = (links: LastLinks): CountedRows => linkSummary(links).counted;
  return {
    listeners: growthOfTable(listenerCounters, before.listeners, now.listeners, listenersOf),
    links: growthOfTable(linkCounters, before.links, now.links, linksOf),
    refused: false,
  };
}

function growthOfTable<T extends { readonly totals: ProcessTotals }>(
  names: readonly string[],
  before: T | undefined,
  now: T | undefined,
  rowsOf: (table: T) => CountedRows,
): CountedRows | undefined {
  if (before === undefined || now === undefined || before === now) return undefined;
  return addReport(names, before.totals, rowsOf(before), now.totals.processId, rowsOf(now)).growth;
}

export const linkSummary = (links: LastLinks): LinkSummary =>
  (links.summary ??= summarizeLinks(linksOf(links.wire), noRows));

const summarizeLinks = (links: readonly LinkMetric[], last: CountedRows): LinkSummary => ({
  counted: packRows(linkCounters.length, links.map(linkRow), last),
  isLossy: links.some(isLossy),
  roundTrips: roundTrips(links),
});

/** Without a heartbeat, the time in which a link can carry 2^53 bytes. */
const uptimeMs = (beat: Beat | undefined): number => (beat === undefined ? 72_000_000 : beat.uptime * 1_000);

/** The report, with its predecessor's bandwidth where no link can have carried so much. @param last of the same process */
export function plausibleMetrics(
  report: MetricsFacts,
  last: LastMetrics | undefined,
  at: number,
  { beat }: Entry,
): MetricsFacts {
  const [before, now] = [last?.report.bandwidth, report.bandwidth];
  if (now === null) return report;
  const sinceMs = before === undefined || before === null ? uptimeMs(beat) : at - (last?.at ?? at);
  const grown = Math.max(growthOf(before?.bytes_in, now.bytes_in), growthOf(before?.bytes_out, now.bytes_out));
  return couldCarry(grown, sinceMs) ? report : { ...report, bandwidth: before ?? null };
}

/** Enters a report. @param at milliseconds since the epoch @returns the previous report of the same process */
export function applyMetrics(
  entry: Entry,
  report: MetricsFacts,
  process: ReportingProcess,
  at: number,
): MetricsFacts | undefined {
  const before = entry.metrics;
  entry.metrics = { ...process, at, report, health_since: healthSince(report, timestamp(at), before) };
  return before?.process_id === process.process_id ? before.report : undefined;
}

/** When each upstream cluster was first reported in its current state. */
function healthSince(
  { gateway }: MetricsFacts,
  reportedAt: string,
  before: LastMetrics | undefined,
): LastMetrics['health_since'] {
  const earlier = new Map(before?.report.gateway?.upstreams.map(({ cluster, healthy }) => [cluster, healthy]));
  const since = (gateway?.upstreams ?? []).map(({ cluster, healthy }): [string, string] => {
    const unchanged = earlier.get(cluster) === healthy ? before?.health_since[cluster] : undefined;
    return [cluster, unchanged ?? reportedAt];
  });
  const known = before?.health_since ?? {};
  // The same object while nothing changes, because `counts.ts` compares it.
  const isSame = since.length === Object.keys(known).length && since.every(([cluster, at]) => known[cluster] === at);
  return isSame && before !== undefined ? known : Object.fromEntries(since);
}

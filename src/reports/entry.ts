/**
 * What one node told last, and how a heartbeat or a metrics report changes it. The table of links is kept as it came, and what
 * is worked out of it beside it; that of listeners is larger, see `listener-table.ts`. Pure: `table.ts` holds the entries of
 * all nodes. Implements `docs/contract/agent-protocol.md#heartbeats-commands-metrics`.
 */
import type { LinkMetric } from '../gen/svc/control/v1/heartbeat.js';
import { timestamp } from '../kernel/clock.js';
import {
  canHaveCarried,
  couldCarry,
  countOn,
  linkCounters,
  listenerCounters,
  noRows,
  packRows,
} from './counted-rows.js';
import type { CountedRows } from './counted-rows.js';
import { countedOf, isSameTable, withCountersOf } from './listener-table.js';
import type { ListenerTable } from './listener-table.js';
import type { HeartbeatFacts, MetricsFacts, PresenceFacts, ReportingProcess } from './port.js';
import { growthOf, noTotals } from './process-totals.js';
import type { ProcessTotals } from './process-totals.js';
import { isLossy, linkRow, linksOf, linksWithCountersOf, roundTrips } from './reported.js';

/** Who is in charge of a node's session. */
export interface Presence {
  readonly facts: PresenceFacts;
  /** Monotonic milliseconds until which it counts without another sign of life; this instance ends its own sessions itself. */
  readonly until: number;
}

/** The listeners of the last heartbeat. */
export interface ToldListeners {
  readonly table: ListenerTable;
  readonly totals: ProcessTotals;
}

/** The links of the last heartbeat. */
export interface ToldLinks {
  /** As they came, see `ReportedTable`. */
  readonly wire: Uint8Array;
  readonly totals: ProcessTotals;
  /** Undefined of a table that was read from the store, until somebody asks. */
  out: WorkedOutLinks | undefined;
}
interface WorkedOutLinks {
  readonly counted: CountedRows;
  /** Whether a link of a chain loses more than is tolerable. */
  readonly isLossy: boolean;
  readonly roundTrips: ReturnType<typeof roundTrips>;
}

export interface Beat {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly runs: number | null;
  readonly cpu: number;
  readonly memory: number;
  readonly uptime: number;
}

export interface ToldMetrics extends ReportingProcess {
  readonly at: number;
  readonly report: MetricsFacts;
  readonly healthSince: { readonly [cluster: string]: string };
}

/** What a node tells beside its signs of life; each has a document of its own in the read store. */
export type Part = 'listeners' | 'links' | 'metrics';
export const partsOf: readonly Part[] = ['listeners', 'links', 'metrics'];

const notWritten = { listeners: '', links: '', metrics: '' } as const;

/** What one node told last. */
export interface Entry {
  presence: Presence | undefined;
  /** For how long a sign of life counts, in milliseconds. */
  offlineAfterMs: number;
  /** When the last sign of life came, milliseconds since the epoch; 0 before one. */
  seenAt: number;
  /** Whether a heartbeat came in the session that it has. */
  hasReported: boolean;
  beat: Beat | undefined;
  listeners: ToldListeners | undefined;
  links: ToldLinks | undefined;
  metrics: ToldMetrics | undefined;
  /** Which instance wrote each part to the read store last, and at which place, see `store.ts`. */
  written: { readonly [P in Part]: string };
}

/** A class, because there is one for each node: see `src/channel/noise/cipher-state.ts`. */
export class EmptyEntry implements Entry {
  presence: Presence | undefined = undefined;
  offlineAfterMs = 0;
  seenAt = 0;
  hasReported = false;
  beat: Beat | undefined = undefined;
  listeners: ToldListeners | undefined = undefined;
  links: ToldLinks | undefined = undefined;
  metrics: ToldMetrics | undefined = undefined;
  written: Entry['written'] = notWritten;
}

/** What of an entry one heartbeat has changed. */
export interface TakenHeartbeat {
  /** By how much listeners and links have grown; undefined where the table came unchanged. */
  readonly listeners: CountedRows | undefined;
  readonly links: CountedRows | undefined;
  /** It counted more bytes than any link carries: its counters are left as they were, and all else counts. */
  readonly refused: boolean;
}

/** Enters a heartbeat. @param at milliseconds since the epoch */
export function takeHeartbeat(entry: Entry, facts: HeartbeatFacts, at: number): TakenHeartbeat {
  const { process_id, runtime_listeners, link_metrics, uptime_seconds } = facts;
  const { beat, listeners } = entry;
  const isGoingOn = beat !== undefined && listeners?.totals.processId === process_id;
  const sinceMs = isGoingOn ? at - beat.at : uptime_seconds * 1_000;
  entry.beat = {
    at,
    runs: facts.runs_generation,
    cpu: facts.cpu_usage,
    memory: facts.memory_usage,
    uptime: uptime_seconds,
  };
  let refused = false;
  const possible = (columns: number, growth: CountedRows): boolean => {
    if (canHaveCarried(columns, growth, sinceMs)) return true;
    refused = true;
    return false;
  };
  return {
    listeners: takeListeners(entry, runtime_listeners, process_id, possible),
    links: takeLinks(entry, link_metrics, process_id, possible),
    refused,
  };
}

type Possible = (columns: number, growth: CountedRows) => boolean;

function takeListeners(
  entry: Entry,
  table: ListenerTable,
  processId: string,
  possible: Possible = () => true,
): CountedRows | undefined {
  const before = entry.listeners;
  const isGoingOn = before?.totals.processId === processId;
  if (isGoingOn && isSameTable(before.table, table)) return undefined;
  const last = before === undefined ? noRows : countedOf(before.table);
  const { totals, growth } = countOn(listenerCounters, before?.totals ?? noTotals, last, processId, countedOf(table));
  if (!possible(listenerCounters.length, growth)) {
    return takeListeners(entry, withCountersOf(isGoingOn ? last : noRows, table), processId);
  }
  entry.listeners = { table, totals };
  return growth;
}

function takeLinks(
  entry: Entry,
  { bytes, rows }: HeartbeatFacts['link_metrics'],
  processId: string,
  possible: Possible = () => true,
): CountedRows | undefined {
  const before = entry.links;
  const isGoingOn = before?.totals.processId === processId;
  if (isGoingOn && Buffer.compare(before.wire, bytes) === 0) return undefined;
  const last = before === undefined ? noRows : outOfLinks(before).counted;
  const out = workOutLinks(rows(), last);
  const { totals, growth } = countOn(linkCounters, before?.totals ?? noTotals, last, processId, out.counted);
  if (!possible(linkCounters.length, growth)) {
    return takeLinks(entry, linksWithCountersOf(isGoingOn ? last : noRows, rows()), processId);
  }
  entry.links = { wire: bytes, totals, out };
  return growth;
}

export function outOfLinks(told: ToldLinks): WorkedOutLinks {
  return (told.out ??= workOutLinks(linksOf(told.wire), noRows));
}

const workOutLinks = (links: readonly LinkMetric[], last: CountedRows): WorkedOutLinks => ({
  counted: packRows(linkCounters.length, links.map(linkRow), last),
  isLossy: links.some(isLossy),
  roundTrips: roundTrips(links),
});

/** Of a node that has not told it, as long as a counter could have grown that is not larger than its type. */
const uptimeMs = (beat: Beat | undefined): number => (beat === undefined ? 72_000_000 : beat.uptime * 1_000);

/** The report, with the bandwidth of the one before it where no link can have carried so much. @param last of the same process */
export function possibleMetrics(
  report: MetricsFacts,
  last: ToldMetrics | undefined,
  at: number,
  { beat }: Entry,
): MetricsFacts {
  const [before, now] = [last?.report.bandwidth, report.bandwidth];
  if (now === null) return report;
  const sinceMs = before === undefined || before === null ? uptimeMs(beat) : at - (last?.at ?? at);
  const grown = Math.max(growthOf(before?.bytes_in, now.bytes_in), growthOf(before?.bytes_out, now.bytes_out));
  return couldCarry(grown, sinceMs) ? report : { ...report, bandwidth: before ?? null };
}

/** Enters a report. @param at milliseconds since the epoch @returns the report before it of the same process, or of none that is named */
export function takeMetrics(
  entry: Entry,
  report: MetricsFacts,
  process: ReportingProcess,
  at: number,
): MetricsFacts | undefined {
  const before = entry.metrics;
  entry.metrics = { ...process, at, report, healthSince: healthSince(report, timestamp(at), before) };
  return before?.process_id === process.process_id ? before.report : undefined;
}

/** When each upstream cluster was first reported to be as it is now. */
function healthSince(
  { gateway }: MetricsFacts,
  reportedAt: string,
  before: ToldMetrics | undefined,
): ToldMetrics['healthSince'] {
  const earlier = new Map(before?.report.gateway?.upstreams.map(({ cluster, healthy }) => [cluster, healthy]));
  const since = (gateway?.upstreams ?? []).map(({ cluster, healthy }): [string, string] => {
    const unchanged = earlier.get(cluster) === healthy ? before?.healthSince[cluster] : undefined;
    return [cluster, unchanged ?? reportedAt];
  });
  const known = before?.healthSince ?? {};
  // The same object as long as nothing has changed: whoever judges health compares it.
  const isSame = since.length === Object.keys(known).length && since.every(([cluster, at]) => known[cluster] === at);
  return isSame && before !== undefined ? known : Object.fromEntries(since);
}

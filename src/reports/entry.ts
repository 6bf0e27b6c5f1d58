/**
 * What one node told last, and how a heartbeat or a metrics report changes it. Tables are kept as they came, since most come
 * again unchanged and are never looked at; what is worked out of one is kept beside it. Pure: `table.ts` holds the entries of
 * all nodes. Implements `docs/contract/agent-protocol.md#heartbeats-commands-metrics`.
 */
import type { LinkMetric, RuntimeListener } from '../gen/svc/control/v1/heartbeat.js';
import { timestamp } from '../kernel/clock.js';
import { countOn, linkCounters, listenerCounters, noRows, packRows } from './counted-rows.js';
import type { CountedRows, RowGrowth } from './counted-rows.js';
import { inShort } from './listener-states.js';
import type { ListenersInShort } from './listener-states.js';
import type { HeartbeatFacts, MetricsFacts, PresenceFacts, ReportedTable, ReportingProcess } from './port.js';
import { noTotals } from './process-totals.js';
import type { ProcessTotals } from './process-totals.js';
import { isLossy, linkRow, linksOf, listenerRow, listenersOf, roundTrips } from './reported.js';

/** Who is in charge of a node's session. */
export interface Presence {
  readonly facts: PresenceFacts;
  /** Monotonic milliseconds until which it counts without another sign of life; this instance ends its own sessions itself. */
  readonly until: number;
}

/** A table of the last heartbeat: listeners, or links. */
export interface ToldTable {
  /** As it came, see `ReportedTable`. */
  readonly wire: Uint8Array;
  readonly totals: ProcessTotals;
}

interface WorkedOutListeners {
  readonly counted: CountedRows;
  /** The sum over its rows. */
  readonly activeSessions: number;
  readonly short: ListenersInShort;
}
interface WorkedOutLinks {
  readonly counted: CountedRows;
  /** Whether a link of a chain loses more than is tolerable. */
  readonly isLossy: boolean;
  /** Of the links where one was measured, in milliseconds. */
  readonly roundTrips: readonly (readonly [key: string, ms: number])[];
}
/** `out` is undefined of a table that was read from the store, until somebody asks. */
export interface ToldListeners extends ToldTable {
  out: WorkedOutListeners | undefined;
}
export interface ToldLinks extends ToldTable {
  out: WorkedOutLinks | undefined;
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
  readonly listeners: readonly RowGrowth[] | undefined;
  readonly links: readonly RowGrowth[] | undefined;
}

/** Enters a heartbeat. @param at milliseconds since the epoch */
export function takeHeartbeat(entry: Entry, facts: HeartbeatFacts, at: number): TakenHeartbeat {
  entry.beat = {
    at,
    runs: facts.runs_generation,
    cpu: facts.cpu_usage,
    memory: facts.memory_usage,
    uptime: facts.uptime_seconds,
  };
  const { process_id, runtime_listeners, link_metrics } = facts;
  return {
    listeners: isAsBefore(entry.listeners, runtime_listeners, process_id)
      ? undefined
      : takeListeners(entry, runtime_listeners, process_id),
    links: isAsBefore(entry.links, link_metrics, process_id) ? undefined : takeLinks(entry, link_metrics, process_id),
  };
}

function isAsBefore(told: ToldTable | undefined, { bytes }: ReportedTable<unknown>, processId: string): boolean {
  return told !== undefined && told.totals.processId === processId && Buffer.compare(told.wire, bytes) === 0;
}

function takeListeners(
  entry: Entry,
  { bytes, rows, routesKnown = false }: HeartbeatFacts['runtime_listeners'],
  processId: string,
): readonly RowGrowth[] {
  const before = entry.listeners;
  const known = before === undefined ? undefined : outOfListeners(before);
  const isWhole = !routesKnown || known === undefined;
  const out = workOutListeners(routesKnown && known === undefined ? listenersOf(bytes) : rows(), known, isWhole);
  const last = known?.counted ?? noRows;
  const { totals, growth } = countOn(listenerCounters, before?.totals ?? noTotals, last, processId, out.counted);
  entry.listeners = { wire: bytes, totals, out };
  return growth;
}

function takeLinks(
  entry: Entry,
  { bytes, rows }: HeartbeatFacts['link_metrics'],
  processId: string,
): readonly RowGrowth[] {
  const before = entry.links;
  const last = before === undefined ? noRows : outOfLinks(before).counted;
  const out = workOutLinks(rows(), last);
  const { totals, growth } = countOn(linkCounters, before?.totals ?? noTotals, last, processId, out.counted);
  entry.links = { wire: bytes, totals, out };
  return growth;
}

export function outOfListeners(told: ToldListeners): WorkedOutListeners {
  return (told.out ??= workOutListeners(listenersOf(told.wire), undefined, true));
}

export function outOfLinks(told: ToldLinks): WorkedOutLinks {
  return (told.out ??= workOutLinks(linksOf(told.wire), noRows));
}

function workOutListeners(
  listeners: readonly RuntimeListener[],
  before: WorkedOutListeners | undefined,
  withRoutes: boolean,
): WorkedOutListeners {
  let activeSessions = 0;
  for (const listener of listeners) activeSessions += Number(listener.activeSessions ?? 0);
  return {
    counted: packRows(listenerCounters, listeners.map(listenerRow), before?.counted ?? noRows),
    activeSessions: Math.min(activeSessions, Number.MAX_SAFE_INTEGER),
    short: inShort(listeners, before?.short, withRoutes),
  };
}

const workOutLinks = (links: readonly LinkMetric[], last: CountedRows): WorkedOutLinks => ({
  counted: packRows(linkCounters, links.map(linkRow), last),
  isLossy: links.some(isLossy),
  roundTrips: roundTrips(links),
});

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

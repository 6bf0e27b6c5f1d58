/**
 * Converts heartbeats to their stored form, and tables to the form in which answers show them. Tables are stored as wire bytes
 * and decoded on demand: most are never read, and decoding a full one costs more than the rest of a heartbeat. Pure. Implements
 * `docs/contract/wire.md#heartbeat-and-metrics`.
 */
import { tolerableLoss } from '../domain/chain/health.js';
import { HeartbeatRequest, type LinkMetric } from '../gen/svc/control/v1/heartbeat.js';
import type { HeartbeatFacts, LinkSample, ReportingProcess, RoundTrip, RuntimeListener } from './port.js';
import {
  byteCount,
  countersAt,
  countersIn,
  linkCounters,
  listenerCounters,
  wholeNumber,
  type CountedRows,
  type CounterRow,
} from './counted-rows.js';
import { finite, linkSample, optional, runtimeListener } from './from-wire.js';
import { activeSessions, listenersOf, shapeSummary, type ListenerTable } from './listener-table.js';
import { sumOf, type Counters, type Rows } from './process-totals.js';

/** @param tables as received; the heartbeat lacks the rows of a table that has not changed */
export function heartbeatFacts(
  heartbeat: HeartbeatRequest,
  tables: { readonly links: { readonly bytes: Uint8Array }; readonly listeners: ListenerTable },
  process: ReportingProcess,
): HeartbeatFacts {
  const { linkMetrics } = heartbeat;
  const { bytes } = tables.links;
  return {
    process_id: process.process_id,
    runs_generation: process.runs_generation,
    cpu_usage: share(heartbeat.cpuUsage),
    memory_usage: share(heartbeat.memoryUsage),
    uptime_seconds: wholeNumber(heartbeat.uptimeSeconds),
    link_metrics: { bytes, rows: () => (linkMetrics.length > 0 ? linkMetrics : linksOf(bytes)) },
    runtime_listeners: tables.listeners,
  };
}

const linkKey = ({ resourceType, resourceId, peerNodeId, peerEndpoint, outer }: LinkMetric): string =>
  [resourceType, resourceId, peerNodeId, peerEndpoint, outer].join('/');

export const linkRow = (link: LinkMetric): CounterRow => [
  linkKey(link),
  [byteCount(link.bytesIn), byteCount(link.bytesOut)],
];

/** Of the links that were measured. */
export function roundTrips(links: readonly LinkMetric[]): readonly RoundTrip[] {
  return links.flatMap(({ resourceId, peerNodeId, rttMs }) => {
    const ms = optional(rttMs);
    return ms === null ? [] : [[resourceId, ms, peerNodeId] as const];
  });
}

function share(value: number): number {
  return Math.min(1, finite(value));
}

/** The links with their previous byte counters, as if they had been received with them; a new link has 0. */
export function linksWithCountersOf(before: CountedRows, links: readonly LinkMetric[]): HeartbeatFacts['link_metrics'] {
  const known = countersIn(before, linkCounters.length);
  const kept = links.map((link): LinkMetric => {
    const [bytesIn = 0, bytesOut = 0] = known(linkKey(link)) ?? [];
    return { ...link, bytesIn: BigInt(bytesIn), bytesOut: BigInt(bytesOut) };
  });
  const bytes = HeartbeatRequest.encode({ ...HeartbeatRequest.create(), linkMetrics: kept }).finish();
  return { bytes, rows: () => kept };
}

/** The rows of a stored table. @param bytes of a `HeartbeatRequest` with that list, found valid when it came */
export const linksOf = (bytes: Uint8Array): readonly LinkMetric[] => HeartbeatRequest.decode(bytes).linkMetrics;

/** @param before counts of earlier processes */
export function listenersIn(table: ListenerTable, before: Rows): readonly RuntimeListener[] {
  const { shape, values } = table;
  const active = activeSessions(table);
  const shown = listenersOf(shape).map((listener, row): RuntimeListener => {
    const counters = countersAt(listenerCounters, values, row);
    return { ...runtimeListener(listener), ...counters, ...countersAt(['active_sessions'], active, row) };
  });
  const rows = shapeSummary(shape).keys.map((key, row) => [key, countersAt(listenerCounters, values, row)] as const);
  return summed(shown, rows, before);
}

/**
 * @param bytes of a `HeartbeatRequest` with that list, found valid when it came
 * @param before as in `listenersIn`
 */
export function linksIn(bytes: Uint8Array, before: Rows): readonly LinkSample[] {
  return linksWhere(() => true, bytes, before);
}

export function lossyLinksIn(bytes: Uint8Array, before: Rows): readonly LinkSample[] {
  return linksWhere(isLossy, bytes, before);
}

function linksWhere(holds: (link: LinkMetric) => boolean, bytes: Uint8Array, before: Rows): readonly LinkSample[] {
  const links = linksOf(bytes).filter(holds);
  const rows = links.map((link) => {
    const [key, values] = linkRow(link);
    return [key, countersAt(linkCounters, values, 0)] as const;
  });
  return summed(links.map(linkSample), rows, before);
}

/** A link of a chain that loses more than is tolerable. */
export function isLossy({ resourceType, lossRatio }: LinkMetric): boolean {
  return resourceType === 'l4_chain' && lossRatio !== undefined && lossRatio > tolerableLoss;
}

/** Adds the earlier counts to each row; if several rows share a key, to the first. */
function summed<R extends object>(
  shown: readonly R[],
  rows: readonly (readonly [key: string, counters: Counters])[],
  before: Rows,
): readonly R[] {
  const rest = new Map(before);
  return shown.map((row, index) => {
    const [key = '', counters = {}] = rows[index] ?? [];
    const offset = rest.get(key);
    rest.delete(key);
    return offset === undefined ? row : { ...row, ...sumOf(counters, offset) };
  });
}

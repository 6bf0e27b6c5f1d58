/** Heartbeats as telemetry takes them, from listeners and links as telemetry shows them. */
import { HeartbeatRequest } from '../../src/gen/svc/control/v1/heartbeat.js';
import { OuterTransport } from '../../src/gen/svc/control/v1/transport.js';
import { tableOfListeners, type ListenerTable } from '../../src/reports/listener-table.js';
import { linksOf } from '../../src/reports/reported.js';
import type { HeartbeatFacts, LinkSample, ReportingProcess, RuntimeListener } from '../../src/reports/port.js';

export interface Reported extends Omit<
  HeartbeatFacts,
  'process_id' | 'runs_generation' | 'link_metrics' | 'runtime_listeners'
> {
  readonly process_id?: string;
  readonly runs_generation?: number | null;
  readonly link_metrics: readonly LinkSample[];
  readonly runtime_listeners: readonly RuntimeListener[];
}

/** A process of an agent that has not told what it runs. */
export const processNamed = (process_id: string): ReportingProcess => ({ process_id, runs_generation: null });

/** On all addresses of IPv4, over TCP. */
export const runningListener = (listen_port: number, more: Partial<RuntimeListener> = {}): RuntimeListener => ({
  transport: 'tcp',
  listen_addr: '0.0.0.0',
  listen_port,
  state: 'running',
  routes: [],
  ...more,
});

/** A link of a chain over TCP that has carried and measured nothing. */
export const linkOfChain = (resource_id: string, more: Partial<LinkSample> = {}): LinkSample => ({
  resource_type: 'l4_chain',
  resource_id,
  peer_node_id: '',
  peer_endpoint: '',
  outer: 'tcp',
  rtt_ms: null,
  jitter_ms: null,
  loss_ratio: null,
  bytes_in: 0,
  bytes_out: 0,
  active_sessions: 0,
  ...more,
});

const counter = (value: number | undefined) => (value === undefined ? undefined : BigInt(value));

export function listenersTold(listeners: readonly RuntimeListener[]): ListenerTable {
  const runtimeListeners = listeners.map((listener) => ({
    transport: listener.transport,
    listenAddr: listener.listen_addr,
    listenPort: listener.listen_port,
    state: listener.state,
    routes: listener.routes.map(({ match_kind, match_value, next_hop, state, ...route }) => ({
      ...route,
      matchKind: match_kind,
      matchValue: match_value,
      nextHop: next_hop,
      state: state ?? '',
    })),
    bytesIn: counter(listener.bytes_in),
    bytesOut: counter(listener.bytes_out),
    activeSessions: counter(listener.active_sessions),
    totalSessions: counter(listener.total_sessions),
    errorSessions: counter(listener.error_sessions),
  }));
  return tableOfListeners(HeartbeatRequest.fromPartial({ runtimeListeners } as object).runtimeListeners);
}

export function linksOnWire(links: readonly LinkSample[]): Uint8Array {
  const linkMetrics = links.map((link) => ({
    resourceType: link.resource_type,
    resourceId: link.resource_id,
    peerNodeId: link.peer_node_id,
    peerEndpoint: link.peer_endpoint,
    outer: OuterTransport[link.outer.toUpperCase() as keyof typeof OuterTransport] ?? 0,
    rttMs: link.rtt_ms ?? undefined,
    jitterMs: link.jitter_ms ?? undefined,
    lossRatio: link.loss_ratio ?? undefined,
    bytesIn: counter(link.bytes_in),
    bytesOut: counter(link.bytes_out),
    activeSessions: counter(link.active_sessions),
  }));
  return HeartbeatRequest.encode(HeartbeatRequest.fromPartial({ linkMetrics } as object)).finish();
}

/** The tables of a heartbeat as an agent sends them. */
export function tablesOnWire({ linkMetrics, runtimeListeners }: HeartbeatRequest) {
  const bytes = HeartbeatRequest.encode({ ...HeartbeatRequest.create(), linkMetrics }).finish();
  return { links: { bytes }, listeners: tableOfListeners(runtimeListeners) };
}

export function heartbeatFactsOf({ link_metrics, runtime_listeners, ...figures }: Reported): HeartbeatFacts {
  const links = linksOnWire(link_metrics);
  return {
    ...processNamed(''),
    ...figures,
    link_metrics: { bytes: links, rows: () => linksOf(links) },
    runtime_listeners: listenersTold(runtime_listeners),
  };
}

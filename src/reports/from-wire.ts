/**
 * What agents report, from the wire to the form in which it is stored or answered. Numbers become safe for JSON: counters are
 * capped at 2^53 - 1 (bytes that will be refused are infinite); NaN, infinities and what is below 0 become 0, or null for
 * measurements. Pure; limits were checked before. Implements `docs/contract/wire.md#heartbeat-and-metrics`.
 */
import type { DiagnosticsReport } from '../gen/svc/control/v1/diagnostics.js';
import type { LinkMetric, RuntimeListener } from '../gen/svc/control/v1/heartbeat.js';
import type { MetricsReport } from '../gen/svc/control/v1/metrics.js';
import { OuterTransport } from '../gen/svc/control/v1/transport.js';
import { onOneLine } from '../kernel/one-line.js';
import { byteCount, wholeNumber } from './counted-rows.js';

/** In the words of the agent, each on one line. */
export function diagnosticsFacts({ items, log }: DiagnosticsReport) {
  return {
    items: items.map(({ name, value, ok }) => ({ name: onOneLine(name), value: onOneLine(value), ok })),
    log: log.map(onOneLine),
  };
}

/** With the proto's names; a part that the agent left out is null. */
export function metricsFacts(report: MetricsReport) {
  const { connections, bandwidth, gateway } = report;
  return {
    connections:
      connections === undefined
        ? null
        : {
            active: wholeNumber(connections.active),
            accepted: wholeNumber(connections.accepted),
            closed: wholeNumber(connections.closed),
            failed: wholeNumber(connections.failed),
            handshake_failures: wholeNumber(connections.handshakeFailures),
          },
    bandwidth:
      bandwidth === undefined
        ? null
        : {
            bytes_in: byteCount(bandwidth.bytesIn),
            bytes_out: byteCount(bandwidth.bytesOut),
            bits_in_per_second: finite(bandwidth.bitsInPerSecond),
            bits_out_per_second: finite(bandwidth.bitsOutPerSecond),
            listeners: bandwidth.listeners.map((listener) => ({
              transport: listener.transport,
              listen_addr: listener.listenAddr,
              listen_port: listener.listenPort,
              bytes_in: wholeNumber(listener.bytesIn),
              bytes_out: wholeNumber(listener.bytesOut),
            })),
          },
    gateway:
      gateway === undefined
        ? null
        : {
            requests: wholeNumber(gateway.requests),
            errors: wholeNumber(gateway.errors),
            worker_restarts: wholeNumber(gateway.workerRestarts),
            latency_p50_ms: finite(gateway.latencyP50Ms),
            latency_p99_ms: finite(gateway.latencyP99Ms),
            upstreams: gateway.upstreams.map((upstream) => ({
              cluster: upstream.cluster,
              requests: wholeNumber(upstream.requests),
              errors: wholeNumber(upstream.errors),
              healthy: upstream.healthy,
              latency_p99_ms: finite(upstream.latencyP99Ms),
            })),
          },
  };
}

const outerNames = new Map<number, string>(
  Object.entries(OuterTransport).map(([name, value]) => [value, value === 0 ? '' : name.toLowerCase()]),
);

/** Without counters. A route's state is null if it is the listener's. */
export function runtimeListener(listener: RuntimeListener) {
  return {
    transport: listener.transport,
    listen_addr: listener.listenAddr,
    listen_port: listener.listenPort,
    state: listener.state,
    routes: listener.routes.map((route) => ({
      service: route.service,
      payload: route.payload,
      outer: route.outer,
      security: route.security,
      match_kind: route.matchKind,
      match_value: route.matchValue,
      next_hop: route.nextHop,
      state: route.state === '' ? null : route.state,
    })),
  };
}

export function linkSample(link: LinkMetric) {
  const loss = optional(link.lossRatio);
  return {
    resource_type: link.resourceType,
    resource_id: link.resourceId,
    peer_node_id: link.peerNodeId,
    peer_endpoint: link.peerEndpoint,
    outer: outerNames.get(link.outer) ?? '',
    rtt_ms: optional(link.rttMs),
    jitter_ms: optional(link.jitterMs),
    loss_ratio: loss && Math.min(1, loss),
    bytes_in: wholeNumber(link.bytesIn),
    bytes_out: wholeNumber(link.bytesOut),
    active_sessions: wholeNumber(link.activeSessions),
  };
}

export function finite(value: number): number {
  return Number.isFinite(value) && value > 0 ? value : 0;
}

export function optional(value: number | undefined): number | null {
  return value !== undefined && Number.isFinite(value) && value >= 0 ? value : null;
}

/**
 * Converts heartbeats and metrics from the wire to the form that telemetry stores. Pure; limits are checked before.
 * Numbers are made safe for JSON: 64-bit counters are capped at 2^53 - 1, NaN and infinities become 0.
 */
import type { HeartbeatFacts, LinkSample, RuntimeListener } from '../../telemetry/port.js';
import type {
  HeartbeatRequest,
  LinkMetric,
  RuntimeListener as WireListener,
} from '../../gen/svc/control/v1/heartbeat.js';
import type { MetricsReport } from '../../gen/svc/control/v1/metrics.js';
import { OuterTransport } from '../../gen/svc/control/v1/transport.js';

const outerNames = new Map<number, string>(
  Object.entries(OuterTransport).map(([name, value]) => [value, value === 0 ? '' : name.toLowerCase()]),
);

export function heartbeatFacts(heartbeat: HeartbeatRequest): HeartbeatFacts {
  return {
    cpu_usage: share(heartbeat.cpuUsage),
    memory_usage: share(heartbeat.memoryUsage),
    uptime_seconds: whole(heartbeat.uptimeSeconds),
    link_metrics: heartbeat.linkMetrics.map(linkSample),
    runtime_listeners: heartbeat.runtimeListeners.map(runtimeListener),
  };
}

/** The report as a plain object with the names of the proto files. */
export function metricsFacts(report: MetricsReport): object {
  const { connections, bandwidth, gateway } = report;
  return {
    sequence: whole(report.sequence),
    connections: connections && {
      active: whole(connections.active),
      accepted: whole(connections.accepted),
      closed: whole(connections.closed),
      failed: whole(connections.failed),
      handshake_failures: whole(connections.handshakeFailures),
    },
    bandwidth: bandwidth && {
      bytes_in: whole(bandwidth.bytesIn),
      bytes_out: whole(bandwidth.bytesOut),
      bits_in_per_second: finite(bandwidth.bitsInPerSecond),
      bits_out_per_second: finite(bandwidth.bitsOutPerSecond),
      listeners: bandwidth.listeners.map((listener) => ({
        transport: listener.transport,
        listen_addr: listener.listenAddr,
        listen_port: listener.listenPort,
        bytes_in: whole(listener.bytesIn),
        bytes_out: whole(listener.bytesOut),
      })),
    },
    gateway: gateway && {
      requests: whole(gateway.requests),
      errors: whole(gateway.errors),
      worker_restarts: whole(gateway.workerRestarts),
      latency_p50_ms: finite(gateway.latencyP50Ms),
      latency_p99_ms: finite(gateway.latencyP99Ms),
      upstreams: gateway.upstreams.map((upstream) => ({
        cluster: upstream.cluster,
        requests: whole(upstream.requests),
        errors: whole(upstream.errors),
        healthy: upstream.healthy,
        latency_p99_ms: finite(upstream.latencyP99Ms),
      })),
    },
  };
}

function runtimeListener(listener: WireListener): RuntimeListener {
  const { bytesIn, bytesOut, activeSessions, totalSessions, errorSessions } = listener;
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
    })),
    ...(bytesIn === undefined ? {} : { bytes_in: whole(bytesIn) }),
    ...(bytesOut === undefined ? {} : { bytes_out: whole(bytesOut) }),
    ...(activeSessions === undefined ? {} : { active_sessions: whole(activeSessions) }),
    ...(totalSessions === undefined ? {} : { total_sessions: whole(totalSessions) }),
    ...(errorSessions === undefined ? {} : { error_sessions: whole(errorSessions) }),
  };
}

function linkSample(link: LinkMetric): LinkSample {
  return {
    resource_type: link.resourceType,
    resource_id: link.resourceId,
    peer_node_id: link.peerNodeId,
    peer_endpoint: link.peerEndpoint,
    outer: outerNames.get(link.outer) ?? '',
    rtt_ms: optional(link.rttMs),
    jitter_ms: optional(link.jitterMs),
    loss_ratio: optional(link.lossRatio),
    bytes_in: whole(link.bytesIn),
    bytes_out: whole(link.bytesOut),
    active_sessions: whole(link.activeSessions),
  };
}

function whole(value: bigint): number {
  return Math.min(Number(value), Number.MAX_SAFE_INTEGER);
}

function finite(value: number): number {
  return Number.isFinite(value) ? value : 0;
}

function share(value: number): number {
  return Math.min(1, Math.max(0, finite(value)));
}

function optional(value: number | undefined): number | null {
  return value === undefined || !Number.isFinite(value) ? null : value;
}

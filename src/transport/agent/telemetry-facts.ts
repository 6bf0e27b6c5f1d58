/**
 * Converts heartbeats and metrics from the wire to the form that telemetry takes. Pure; limits are checked before.
 * Numbers are made safe for JSON: 64-bit counters are capped at 2^53 - 1, NaN and infinities become 0. The tables of a
 * heartbeat are stored in the form of the wire.
 */
import { reportedTable, wholeNumber as whole } from '../../telemetry/reported-tables.js';
import type { HeartbeatFacts, ReportedTable } from '../../telemetry/port.js';
import type { MetricsReport } from '../../gen/svc/control/v1/metrics.js';
import { HeartbeatRequest } from '../../gen/svc/control/v1/heartbeat.js';

export function heartbeatFacts(heartbeat: HeartbeatRequest): HeartbeatFacts {
  return {
    cpu_usage: share(heartbeat.cpuUsage),
    memory_usage: share(heartbeat.memoryUsage),
    uptime_seconds: whole(heartbeat.uptimeSeconds),
    link_metrics: tableOf({ linkMetrics: heartbeat.linkMetrics }),
    runtime_listeners: tableOf({ runtimeListeners: heartbeat.runtimeListeners }),
  };
}

const empty = HeartbeatRequest.create();

function tableOf(list: Partial<Pick<HeartbeatRequest, 'linkMetrics' | 'runtimeListeners'>>): ReportedTable {
  return reportedTable(HeartbeatRequest.encode({ ...empty, ...list }).finish());
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

function finite(value: number): number {
  return Number.isFinite(value) ? value : 0;
}

function share(value: number): number {
  return Math.min(1, Math.max(0, finite(value)));
}

/**
 * The tables of a heartbeat as agents send them, and as they are shown. They are stored as bytes of the wire and decoded
 * by whoever reads them: most are never read, and a full table costs more to decode than everything else of a heartbeat.
 * Numbers are made safe for JSON: 64-bit counters are capped at 2^53 - 1, NaN and infinities count as not measured.
 * Implements `docs/contract/wire.md#heartbeat-and-metrics`.
 */
import { hash } from 'node:crypto';
import { HeartbeatRequest } from '../gen/svc/control/v1/heartbeat.js';
import type { LinkMetric, RuntimeListener as WireListener } from '../gen/svc/control/v1/heartbeat.js';
import { OuterTransport } from '../gen/svc/control/v1/transport.js';
import type { LinkSample, ReportedTable, RuntimeListener } from './port.js';

/** @param bytes of a `HeartbeatRequest` with nothing but one of its lists */
export function reportedTable(bytes: Uint8Array): ReportedTable {
  return { bytes, hash: bytes.length === 0 ? '' : hash('sha256', bytes, 'base64url') };
}

/** @param bytes of a `HeartbeatRequest` with that list, found valid when it came */
export function listenersIn(bytes: Uint8Array): readonly RuntimeListener[] {
  return HeartbeatRequest.decode(bytes).runtimeListeners.map(runtimeListener);
}

/** @param bytes of a `HeartbeatRequest` with that list, found valid when it came */
export function linksIn(bytes: Uint8Array): readonly LinkSample[] {
  return HeartbeatRequest.decode(bytes).linkMetrics.map(linkSample);
}

/** A 64-bit counter as a number that JSON and JavaScript keep exactly, or the largest of those. */
export function wholeNumber(value: bigint): number {
  return Math.min(Number(value), Number.MAX_SAFE_INTEGER);
}

const outerNames = new Map<number, string>(
  Object.entries(OuterTransport).map(([name, value]) => [value, value === 0 ? '' : name.toLowerCase()]),
);

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
    ...(bytesIn === undefined ? {} : { bytes_in: wholeNumber(bytesIn) }),
    ...(bytesOut === undefined ? {} : { bytes_out: wholeNumber(bytesOut) }),
    ...(activeSessions === undefined ? {} : { active_sessions: wholeNumber(activeSessions) }),
    ...(totalSessions === undefined ? {} : { total_sessions: wholeNumber(totalSessions) }),
    ...(errorSessions === undefined ? {} : { error_sessions: wholeNumber(errorSessions) }),
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
    bytes_in: wholeNumber(link.bytesIn),
    bytes_out: wholeNumber(link.bytesOut),
    active_sessions: wholeNumber(link.activeSessions),
  };
}

function optional(value: number | undefined): number | null {
  return value === undefined || !Number.isFinite(value) ? null : value;
}

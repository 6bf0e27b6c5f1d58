/**
 * The payloads of light agents: heartbeats with what a snapshot runs, or from tables that are encoded once for all agents, and
 * the parts that an agent needs from a service's payload, read without decoding a whole snapshot. Everything else uses `src/gen`.
 * Implements `docs/contract/wire.md#configuration` from the agent's side.
 */
import { BinaryReader, BinaryWriter } from '@bufbuild/protobuf/wire';
import { ConfigUnchanged, RuntimeConfigSnapshot } from '../../../src/gen/svc/control/v1/config.js';
import {
  HeartbeatRequest,
  HeartbeatResponse,
  type RuntimeListener,
  type RuntimeRoute,
} from '../../../src/gen/svc/control/v1/heartbeat.js';
import { MetricsReport } from '../../../src/gen/svc/control/v1/metrics.js';
import { SessionClose } from '../../../src/gen/svc/control/v1/session.js';
import { checkRules } from '../../../src/agent/plan/rule-checks.js';
import { limits } from '../../../src/kernel/limits.js';
import { runSync } from '../../../src/kernel/pieces.js';
import { err } from '../../../src/kernel/result.js';

/** How many different tables changing heartbeats go through. */
const changingTables = 16;

export interface TableSize {
  readonly listeners: number;
  readonly routesPerListener: number;
  /** Whether each heartbeat of an agent differs from its last one. */
  readonly changing: boolean;
}

/** Encoded runtime tables; an agent's heartbeats go through them in turn. */
export type Tables = readonly Uint8Array[];

const route = (listener: number, index: number): RuntimeRoute => ({
  service: `service-${listener}-${index}`,
  payload: 'tcp',
  outer: 'tcp',
  security: 'tls',
  matchKind: 'sni',
  matchValue: `host-${index}.service-${listener}.example`,
  nextHop: `192.0.2.${index + 1}:8443`,
  state: '',
});

/** A table like a busy gateway's. @param version makes the counters differ; @internal exported for tests */
export function runtimeTable(size: TableSize, version: number): readonly RuntimeListener[] {
  return Array.from({ length: size.listeners }, (_, listener) => ({
    transport: 'tcp',
    listenAddr: '0.0.0.0',
    listenPort: 20_000 + listener,
    state: 'running',
    routes: Array.from({ length: size.routesPerListener }, (_route, index) => route(listener, index)),
    bytesIn: BigInt(1_000_000 + version * 4_096 + listener),
    bytesOut: BigInt(2_000_000 + version * 8_192 + listener),
    activeSessions: BigInt(10 + (version % 7)),
    totalSessions: BigInt(1_000 + version),
    errorSessions: 0n,
  }));
}

/** Encodes the tables that heartbeats of this size go through: one, or several if they change. */
export function encodeTables(size: TableSize): Tables {
  const versions = size.changing ? changingTables : 1;
  return Array.from({ length: versions }, (_, version) => encodeTable(runtimeTable(size, version)));
}

const encodeTable = (runtimeListeners: readonly RuntimeListener[]): Uint8Array =>
  HeartbeatRequest.encode({ ...emptyHeartbeat, runtimeListeners }).finish();

/** What a gateway that runs all of a snapshot reports of it. */
export interface Running {
  /** Encoded, as `Tables`. */
  readonly table: Uint8Array;
  /** Its upstream clusters, all of which are healthy. */
  readonly clusters: readonly string[];
}

/** @param bytes of a `RuntimeConfigSnapshot`; empty for none */
export function runningOf(bytes: Uint8Array): Running {
  const snapshot = RuntimeConfigSnapshot.decode(bytes);
  const listeners = new Map<string, RuntimeListener>();
  // Only what the rules listen on counts here, not whether they could be carried out.
  for (const { listener, routes } of runSync(checkRules(snapshot, new Map(), noContext, []))) {
    if (listener === undefined) continue;
    const { transport, addr: listenAddr, port: listenPort } = listener;
    const key = [transport, listenAddr, listenPort].join(' ');
    const others = listeners.get(key)?.routes ?? [];
    listeners.set(key, { transport, listenAddr, listenPort, state: 'running', routes: [...others, ...routes] });
  }
  const table = encodeTable([...listeners.values()].slice(0, limits.agent.runtimeListeners));
  return { table, clusters: snapshot.gateway?.upstreamClusters.map(({ name }) => name) ?? [] };
}

const noContext = () => err('this agent has no data plane');

/** A report that all clusters are healthy, without traffic. */
export function metricsOf(sequence: number, clusters: readonly string[]): MetricsReport {
  const figures = { requests: 0n, errors: 0n };
  const upstreams = clusters.map((cluster) => ({ cluster, ...figures, healthy: true, latencyP99Ms: 0 }));
  const gateway = { ...figures, workerRestarts: 0n, latencyP50Ms: 0, latencyP99Ms: 0, upstreams };
  return { ...MetricsReport.create(), sequence: BigInt(sequence), gateway };
}

const emptyHeartbeat = HeartbeatRequest.create();

/** Field 2 of AgentPayload, length-delimited. */
const heartbeatTag = (2 << 3) | 2;

/** An encoded AgentPayload with a heartbeat. Concatenated fields are one message, so the table is only copied. */
export function heartbeatPayload(sequence: number, now: number, table: Uint8Array): Uint8Array {
  const head = HeartbeatRequest.encode({
    ...emptyHeartbeat,
    sequence: BigInt(sequence),
    timestamp: { seconds: BigInt(Math.floor(now / 1000)), nanos: Math.floor(now % 1000) * 1_000_000 },
    cpuUsage: 0.25,
    memoryUsage: 0.5,
    uptimeSeconds: BigInt(Math.floor(process.uptime())),
  }).finish();
  return new BinaryWriter()
    .uint32(heartbeatTag)
    .uint32(head.length + table.length)
    .raw(head)
    .raw(table)
    .finish();
}

export type Heard =
  | { readonly kind: 'heartbeatResponse'; readonly value: HeartbeatResponse }
  | {
      readonly kind: 'snapshot';
      readonly generation: number;
      readonly checksum: Buffer;
      /** The whole `RuntimeConfigSnapshot`; overwritten after the call. */
      readonly bytes: Uint8Array;
    }
  | { readonly kind: 'unchanged'; readonly generation: number }
  | { readonly kind: 'close'; readonly value: SessionClose }
  | { readonly kind: 'unknown' };

/** Reads a ServicePayload. @throws Error for bytes that do not parse */
export function readServicePayload(bytes: Uint8Array): Heard {
  if (bytes.length === 0) return { kind: 'unknown' };
  const reader = new BinaryReader(bytes);
  const field = reader.uint32() >>> 3;
  const length = reader.uint32();
  switch (field) {
    case 1:
      return { kind: 'heartbeatResponse', value: HeartbeatResponse.decode(reader, length) };
    case 2:
      return readUpdate(bytes, reader);
    case 3:
      return { kind: 'close', value: SessionClose.decode(reader, length) };
    default:
      return { kind: 'unknown' };
  }
}

function readUpdate(bytes: Uint8Array, reader: BinaryReader): Heard {
  if (reader.pos >= reader.len) return { kind: 'unknown' };
  const field = reader.uint32() >>> 3;
  const length = reader.uint32();
  if (field === 1) return readSnapshot(bytes.subarray(reader.pos, reader.pos + length));
  if (field === 2) {
    return { kind: 'unchanged', generation: Number(ConfigUnchanged.decode(reader, length).generation) };
  }
  return { kind: 'unknown' };
}

function readSnapshot(bytes: Uint8Array): Heard {
  const reader = new BinaryReader(bytes);
  let generation = 0;
  let checksum = Buffer.alloc(0);
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (field === 2) generation = Number(reader.uint64());
    else if (field === 3) checksum = Buffer.from(reader.bytes());
    // The rules follow, which are most of the bytes.
    else if (field > 3) break;
    else reader.skip(wireType);
  }
  return { kind: 'snapshot', generation, checksum, bytes };
}

/**
 * Reads a heartbeat without decoding its tables: a full one has hundreds of texts, which nobody may ever look at. Takes
 * only what an ordinary encoder writes and leaves everything else to the generated decoder, so it refuses nothing and a
 * property compares the two. Pure. Implements `docs/contract/wire.md#heartbeat-and-metrics`.
 */
import { HeartbeatRequest } from '../../gen/svc/control/v1/heartbeat.js';
import type { ReportedTable } from '../../telemetry/port.js';
import { reportedTable } from '../../telemetry/reported-tables.js';
import { emptyField, isWellFormed, malformed, readField } from './wire-scan.js';

/** A heartbeat with its tables as bytes, which share the memory of the payload; that has few bytes besides. */
export interface Heartbeat {
  readonly nodeId: string;
  readonly sequence: bigint;
  readonly cpuUsage: number;
  readonly memoryUsage: number;
  readonly uptimeSeconds: bigint;
  readonly linkMetrics: ReportedTable;
  readonly runtimeListeners: ReportedTable;
}

const heartbeatInPayload = 2;
/** What a heartbeat may have besides its tables, which keep it in memory as long as they are kept. */
const otherBytesMax = 1_024;

/** Where the entries of a list are; `end` is 0 while there is none. */
interface Run {
  from: number;
  end: number;
}

/**
 * Does not look into the tables.
 * @param bytes of an `AgentPayload`
 * @returns undefined if it is anything but one heartbeat in its ordinary form, well-formed outside of its tables
 */
export function readPlainHeartbeat(bytes: Uint8Array): Heartbeat | undefined {
  const field = emptyField();
  const payload = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (readField(payload, 0, payload.length, field) !== payload.length) return undefined;
  if (field.number !== heartbeatInPayload || field.wireType !== 2) return undefined;
  let nodeId = '';
  let sequence = 0;
  let cpuUsage = 0;
  let memoryUsage = 0;
  let uptimeSeconds = 0;
  const links: Run = { from: 0, end: 0 };
  const listeners: Run = { from: 0, end: 0 };
  for (let position = field.start; position < payload.length;) {
    const from = position;
    position = readField(payload, from, payload.length, field);
    if (position === malformed) return undefined;
    switch (field.number * 8 + field.wireType) {
      case (1 << 3) | 2:
        nodeId = payload.toString('utf8', field.start, field.end);
        break;
      case (2 << 3) | 0:
        sequence = field.varint;
        break;
      case (3 << 3) | 2:
        if (!isWellFormed(payload, field.start, field.end)) return undefined;
        break;
      case (4 << 3) | 1:
        cpuUsage = payload.readDoubleLE(field.start);
        break;
      case (5 << 3) | 1:
        memoryUsage = payload.readDoubleLE(field.start);
        break;
      case (6 << 3) | 0:
        uptimeSeconds = field.varint;
        break;
      case (7 << 3) | 2:
        if (!extend(links, from, position)) return undefined;
        break;
      case (8 << 3) | 2:
        if (!extend(listeners, from, position)) return undefined;
        break;
    }
  }
  // Above 2^53 a varint is not exact here.
  if (sequence > Number.MAX_SAFE_INTEGER || uptimeSeconds > Number.MAX_SAFE_INTEGER) return undefined;
  const linkMetrics = payload.subarray(links.from, links.end);
  const runtimeListeners = payload.subarray(listeners.from, listeners.end);
  if (payload.length - linkMetrics.length - runtimeListeners.length > otherBytesMax) return undefined;
  return {
    nodeId,
    sequence: BigInt(sequence),
    cpuUsage,
    memoryUsage,
    uptimeSeconds: BigInt(uptimeSeconds),
    linkMetrics: reportedTable(linkMetrics),
    runtimeListeners: reportedTable(runtimeListeners),
  };
}

/** Adds an entry that follows the ones before it. @returns false if something is in between */
function extend(run: Run, from: number, end: number): boolean {
  if (run.end === 0) run.from = from;
  else if (run.end !== from) return false;
  run.end = end;
  return true;
}

const withoutTables = HeartbeatRequest.create();

function tableOf(lists: Pick<HeartbeatRequest, 'linkMetrics' | 'runtimeListeners'>): ReportedTable {
  return reportedTable(HeartbeatRequest.encode({ ...withoutTables, ...lists }).finish());
}

/** The same form of a heartbeat that was decoded. */
export function heartbeatOf(decoded: HeartbeatRequest): Heartbeat {
  const { nodeId, sequence, cpuUsage, memoryUsage, uptimeSeconds, linkMetrics, runtimeListeners } = decoded;
  return {
    nodeId,
    sequence,
    cpuUsage,
    memoryUsage,
    uptimeSeconds,
    linkMetrics: tableOf({ linkMetrics, runtimeListeners: [] }),
    runtimeListeners: tableOf({ linkMetrics: [], runtimeListeners }),
  };
}

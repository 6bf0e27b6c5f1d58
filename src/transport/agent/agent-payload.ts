/**
 * Reads an `AgentPayload` from its bytes and checks every limit on sizes, counts and texts. Pure. Which payload may come
 * when is checked in `session.ts`. Implements the PROTOCOL_ERROR rows of `docs/contract/agent-protocol.md#control` and
 * the fixed limits of `docs/contract/configuration.md`.
 */
import { AgentPayload } from '../../gen/svc/control/v1/session.js';
import type { AgentHello } from '../../gen/svc/control/v1/session.js';
import type { ConfigApplyReport, ConfigRequest } from '../../gen/svc/control/v1/config.js';
import type { HeartbeatRequest } from '../../gen/svc/control/v1/heartbeat.js';
import { unreachable } from '../../kernel/errors.js';
import { limits } from '../../kernel/limits.js';
import type { ReportedTable } from '../../telemetry/port.js';
import { heartbeatOf, readPlainHeartbeat } from './plain-heartbeat.js';
import type { Heartbeat } from './plain-heartbeat.js';
import { decodeWalked, planWalk, walkMessage } from './wire-scan.js';
import type { WireShape } from './wire-scan.js';

type Decoded = NonNullable<AgentPayload['payload']>;

/** What an agent says; of a heartbeat the tables are left as bytes. */
export type AgentMessage =
  Exclude<Decoded, { readonly $case: 'heartbeat' }> | { readonly $case: 'heartbeat'; readonly value: Heartbeat };

type ReadPayload =
  | {
      readonly kind: 'message';
      readonly message: AgentMessage;
      /** List entries of the message, which are what it costs. */
      readonly entries: number;
      /** What is known to the session's next heartbeat. */
      readonly tables: ValidTables;
    }
  /** Parses, but contains nothing that this release knows. */
  | { readonly kind: 'empty' }
  | { readonly kind: 'refused'; readonly why: string };

const { agent } = limits;

/** One UTF-16 unit is at most three bytes of UTF-8, so such a text is within the limit, even if it is no UTF-8 at all. */
const usualText = { usual: Math.floor(agent.stringBytes / 3) };
const texts = (...fields: readonly number[]): WireShape =>
  Object.fromEntries(fields.map((field) => [field, usualText]));
const maxPort = 65_535;

/** Field numbers of `HeartbeatRequest` and of the messages in it. */
const heartbeatShape: WireShape = {
  3: { nested: {} },
  7: { counted: { name: 'link_metrics', max: agent.linkMetrics }, nested: texts(1, 2, 3, 4) },
  8: {
    counted: { name: 'runtime_listeners', max: agent.runtimeListeners },
    nested: {
      ...texts(1, 2, 4),
      3: { usual: maxPort },
      5: { counted: { name: 'routes', max: agent.runtimeRoutes }, nested: texts(1, 2, 3, 4, 5, 6, 7) },
    },
  },
};

/** The same of `AgentPayload`. */
const payloadPlan = planWalk({
  1: { nested: { 7: { counted: { name: 'detected_addresses', max: agent.detectedAddresses } } } },
  2: { nested: heartbeatShape },
  3: { nested: {} },
  4: { nested: { 3: { counted: { name: 'errors', max: agent.applyErrors }, nested: {} } } },
  5: {
    nested: {
      2: { nested: {} },
      3: { nested: {} },
      4: { nested: { 5: { counted: { name: 'listeners', max: agent.metricsListeners }, nested: {} } } },
      5: { nested: { 6: { counted: { name: 'upstreams', max: agent.metricsUpstreams }, nested: {} } } },
    },
  },
  6: { nested: {} },
});
const tablePlan = planWalk(heartbeatShape);

/** A table that was found valid: when it comes again in the same session, it needs no second look. */
interface ValidTable {
  readonly hash: string;
  readonly entries: number;
}

export interface ValidTables {
  readonly links: ValidTable;
  readonly listeners: ValidTable;
}

const emptyTable: ValidTable = { hash: '', entries: 0 };
/** Of a session without heartbeats. */
export const noTables: ValidTables = { links: emptyTable, listeners: emptyTable };

/**
 * @param nodeId the session's node: a payload names this node or leaves the field empty
 * @param known the tables of the session's last heartbeat
 */
export function readAgentPayload(bytes: Uint8Array, nodeId: string, known: ValidTables = noTables): ReadPayload {
  return readPlain(bytes, nodeId, known) ?? readDecoded(bytes, nodeId, known);
}

/** Undefined for everything but a heartbeat that is ordinary and valid, tables included. */
function readPlain(bytes: Uint8Array, nodeId: string, known: ValidTables): ReadPayload | undefined {
  const heartbeat = readPlainHeartbeat(bytes);
  if (heartbeat === undefined || foreignNode(heartbeat, nodeId) !== undefined) return undefined;
  const links = validTable(heartbeat.linkMetrics, known.links);
  const listeners = validTable(heartbeat.runtimeListeners, known.listeners);
  if (links === undefined || listeners === undefined) return undefined;
  const tables = links === known.links && listeners === known.listeners ? known : { links, listeners };
  return {
    kind: 'message',
    message: { $case: 'heartbeat', value: heartbeat },
    entries: links.entries + listeners.entries,
    tables,
  };
}

function validTable({ bytes, hash }: ReportedTable, known: ValidTable): ValidTable | undefined {
  if (hash === known.hash) return known;
  const walked = walkMessage(bytes, tablePlan);
  // Usual texts and ports are within their limits.
  return walked.ok && walked.value.usual ? { hash, entries: walked.value.entries } : undefined;
}

function readDecoded(bytes: Uint8Array, nodeId: string, tables: ValidTables): ReadPayload {
  const walked = walkMessage(bytes, payloadPlan);
  if (!walked.ok) {
    return refused(walked.error === 'malformed' ? unparsed : `${walked.error.tooMany}: too many entries`);
  }
  const decoded = decodeWalked(AgentPayload, bytes);
  if (!decoded.ok) return refused(unparsed);
  const { payload } = decoded.value;
  if (payload === undefined) return { kind: 'empty' };
  const why = objection(payload, nodeId);
  if (why !== undefined) return refused(why);
  const message: AgentMessage =
    payload.$case === 'heartbeat' ? { ...payload, value: heartbeatOf(payload.value) } : payload;
  return { kind: 'message', message, entries: walked.value.entries, tables };
}

const unparsed = 'payload does not parse';

function refused(why: string): ReadPayload {
  return { kind: 'refused', why };
}

function objection(message: Decoded, nodeId: string): string | undefined {
  switch (message.$case) {
    case 'hello':
      return foreignNode(message.value, nodeId) ?? ofHello(message.value);
    case 'heartbeat':
      return foreignNode(message.value, nodeId) ?? ofHeartbeat(message.value);
    case 'configRequest':
      return foreignNode(message.value, nodeId) ?? ofChecksum(message.value);
    case 'applyReport':
      return ofReport(message.value);
    case 'metrics':
      return longText('metrics', [
        ...(message.value.bandwidth?.listeners ?? []).flatMap((entry) => [entry.transport, entry.listenAddr]),
        ...(message.value.gateway?.upstreams ?? []).map((entry) => entry.cluster),
      ]);
    case 'close':
      return longText('close.message', [message.value.message]);
    default:
      return unreachable(message);
  }
}

function foreignNode(message: { readonly nodeId: string }, nodeId: string): string | undefined {
  return message.nodeId === '' || message.nodeId === nodeId ? undefined : 'node_id: not the node of this session';
}

function ofHello(hello: AgentHello): string | undefined {
  if (hello.multiplexPort < 0 || hello.multiplexPort > maxPort) return 'hello.multiplex_port: expected 0 to 65535';
  return longText('hello', [hello.publicIpv4, hello.publicIpv6, hello.agentVersion, ...hello.detectedAddresses]);
}

function ofHeartbeat(heartbeat: HeartbeatRequest): string | undefined {
  for (const entry of heartbeat.runtimeListeners) {
    if (entry.listenPort < 0 || entry.listenPort > maxPort) return 'runtime_listeners.listen_port: expected 0 to 65535';
    const why = longText('runtime_listeners', [entry.transport, entry.listenAddr, entry.state]);
    if (why !== undefined) return why;
    for (const route of entry.routes) {
      const texts = [route.service, route.payload, route.outer, route.security, route.matchKind, route.matchValue];
      const tooLong = longText('runtime_listeners.routes', [...texts, route.nextHop]);
      if (tooLong !== undefined) return tooLong;
    }
  }
  for (const link of heartbeat.linkMetrics) {
    const why = longText('link_metrics', [link.resourceType, link.resourceId, link.peerNodeId, link.peerEndpoint]);
    if (why !== undefined) return why;
  }
  return undefined;
}

function ofReport(report: ConfigApplyReport): string | undefined {
  for (const error of report.errors) {
    const why = longText('errors', [error.resourceType, error.resourceId, error.path, error.message]);
    if (why !== undefined) return why;
  }
  return ofChecksum(report);
}

function ofChecksum(message: Pick<ConfigRequest, 'checksum'>): string | undefined {
  const { length } = message.checksum;
  return length === 0 || length === agent.checksumBytes ? undefined : `checksum: expected 32 bytes, got ${length}`;
}

function longText(field: string, texts: readonly string[]): string | undefined {
  for (const text of texts) {
    // One UTF-16 unit is at most three bytes of UTF-8, so short texts need no counting.
    if (text.length * 3 <= agent.stringBytes) continue;
    if (Buffer.byteLength(text) > agent.stringBytes)
      return `${field}: a text is longer than ${agent.stringBytes} bytes`;
  }
  return undefined;
}

/**
 * Parses an `AgentPayload` and checks all its limits on sizes, counts and texts. Pure. `session.ts` checks which
 * payload may come when. Implements the PROTOCOL_ERROR rows of `docs/contract/agent-protocol.md#control` and the fixed
 * limits of `docs/contract/configuration.md`.
 */
import { AgentPayload, type AgentHello } from '../../gen/svc/control/v1/session.js';
import type { ConfigApplyReport, ConfigRequest } from '../../gen/svc/control/v1/config.js';
import type { HeartbeatRequest } from '../../gen/svc/control/v1/heartbeat.js';
import { unreachable } from '../../kernel/errors.js';
import { limits } from '../../kernel/limits.js';
import { shapeSummary } from '../../reports/listener-table.js';
import { cutKnownTables, noTables, tablesOf, uncut, type KnownTables } from './heartbeat-tables.js';
import { decodeWalked, walkMessage, type WireShape } from './wire-scan.js';

/** A payload from an agent. */
export type AgentMessage = NonNullable<AgentPayload['payload']>;

type ReadPayload =
  | {
      readonly kind: 'message';
      readonly message: AgentMessage;
      /** List entries of the message, which determine its cost. */
      readonly entries: number;
      /** The heartbeat's tables, parsed or already known; the message lacks the known ones. */
      readonly tables: KnownTables;
    }
  /** Parses, but contains nothing that this release knows. */
  | { readonly kind: 'empty' }
  | { readonly kind: 'refused'; readonly why: string };

const { agent } = limits;

const maxPort = 65_535;
const processIdBytes = 16;

/** Field numbers of `AgentPayload` and of the messages in it. */
const payloadShape: WireShape = {
  1: {
    nested: {
      7: { counted: { name: 'detected_addresses', max: agent.detectedAddresses } },
      8: { counted: { name: 'features', max: agent.features } },
    },
  },
  2: {
    nested: {
      3: { nested: {} },
      7: { counted: { name: 'link_metrics', max: agent.linkMetrics }, nested: {} },
      8: {
        counted: { name: 'runtime_listeners', max: agent.runtimeListeners },
        nested: { 5: { counted: { name: 'routes', max: agent.runtimeRoutes }, nested: {} } },
      },
    },
  },
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
  7: { nested: {} },
  8: {
    sized: { name: 'diagnostics', maxBytes: agent.diagnostics.bytes },
    nested: {
      1: { nested: {} },
      2: { counted: { name: 'items', max: agent.diagnostics.items }, nested: {} },
      3: { counted: { name: 'log', max: agent.diagnostics.logLines } },
    },
  },
};

/**
 * @param nodeId the session's node: a payload names this node or leaves the field empty
 * @param known the tables of the previous heartbeat, which are left out of the message; without them, it is complete
 */
export function readAgentPayload(payload: Uint8Array, nodeId: string, known?: KnownTables): ReadPayload {
  // No `Buffer`, whose views cost several times as much: there may be one for each text.
  const whole = new Uint8Array(payload.buffer, payload.byteOffset, payload.byteLength);
  const cut = known === undefined ? uncut(whole) : cutKnownTables(whole, known);
  const { bytes } = cut;
  const walked = walkMessage(bytes, payloadShape);
  if (!walked.ok) {
    if (walked.error === 'malformed') return refused(unparsed);
    if ('tooMany' in walked.error) return refused(`${walked.error.tooMany}: too many entries`);
    return refused(`${walked.error.tooLong}: too many bytes`);
  }
  const decoded = decodeWalked(AgentPayload, bytes);
  if (!decoded.ok) return refused(unparsed);
  const { payload: message } = decoded.value;
  if (message === undefined) return { kind: 'empty' };
  const why = objection(message, nodeId);
  if (why !== undefined) return refused(why);
  const tables = message.$case === 'heartbeat' ? tablesOf(message.value, cut) : (known ?? noTables);
  const entries =
    message.$case !== 'heartbeat' || tables === known
      ? walked.value
      : tables.links.entries + shapeSummary(tables.listeners.shape).entries;
  return { kind: 'message', message, entries, tables };
}

const unparsed = 'payload does not parse';

function refused(why: string): ReadPayload {
  return { kind: 'refused', why };
}

function objection(message: AgentMessage, nodeId: string): string | undefined {
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
    case 'join': {
      const { requestId, name } = message.value;
      const { requestIdBytes: bytes } = limits.fleet.joinTokens;
      if (requestId.length !== bytes) return `join.request_id: expected ${bytes} bytes, got ${requestId.length}`;
      return longText('join.name', [name]);
    }
    case 'diagnostics':
      return longText('diagnostics', [
        ...message.value.items.flatMap(({ name, value }) => [name, value]),
        ...message.value.log,
      ]);
    default:
      return unreachable(message);
  }
}

function foreignNode(message: { readonly nodeId: string }, nodeId: string): string | undefined {
  return message.nodeId === '' || message.nodeId === nodeId ? undefined : 'node_id: not the node of this session';
}

function ofHello(hello: AgentHello): string | undefined {
  const { multiplexPort, processId, publicIpv4, publicIpv6, agentVersion, detectedAddresses, features } = hello;
  if (multiplexPort < 0 || multiplexPort > maxPort) return 'hello.multiplex_port: expected 0 to 65535';
  if (processId.length !== 0 && processId.length !== processIdBytes) {
    return `hello.process_id: expected ${processIdBytes} bytes, or none`;
  }
  return longText('hello', [publicIpv4, publicIpv6, agentVersion, ...detectedAddresses, ...features]);
}

function ofHeartbeat(heartbeat: HeartbeatRequest): string | undefined {
  for (const entry of heartbeat.runtimeListeners) {
    if (entry.listenPort < 0 || entry.listenPort > maxPort) return 'runtime_listeners.listen_port: expected 0 to 65535';
    const why = longText('runtime_listeners', [entry.transport, entry.listenAddr, entry.state]);
    if (why !== undefined) return why;
    for (const route of entry.routes) {
      const texts = [route.service, route.payload, route.outer, route.security, route.matchKind, route.matchValue];
      const tooLong = longText('runtime_listeners.routes', [...texts, route.nextHop, route.state]);
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
    // One UTF-16 unit takes at most three bytes of UTF-8, so short texts need no counting.
    if (text.length * 3 <= agent.stringBytes) continue;
    if (Buffer.byteLength(text) > agent.stringBytes)
      return `${field}: a text is longer than ${agent.stringBytes} bytes`;
  }
  return undefined;
}

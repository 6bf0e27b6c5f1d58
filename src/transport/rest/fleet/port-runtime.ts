/**
 * Listeners that agents report: the runtime table of each node's last heartbeat. `ports.ts` has the intended ones. Implements
 * `docs/contract/rest.md#port-management`.
 */
import { z } from 'zod';
import { policyTransports } from '../../../domain/listener-policy/policy.js';
import { listenerKey } from '../../../domain/port-table/port-table.js';
import { plainIp } from '../../../kernel/addresses.js';
import type { ReportedListeners, RuntimeListener } from '../../../reports/port.js';
import type { RestApp, RestDeps } from '../deps.js';
import { answers, type Shown } from '../answers/envelope.js';
import { ip, oneOf, uuid } from '../schemas/fields.js';
import { nodeOptions, nodeStatus } from './node-status.js';
import { listInPieces, sendPieces } from '../answers/streamed-json.js';
import { query, queryBoolean, queryInteger } from '../schemas/query.js';
import { component, documented, sample } from '../schemas/documented.js';
import { nodeId, time } from '../schemas/shared-schemas.js';

const counter = (what: string, example: number) =>
  documented(z.int().optional(), `${what}; absent when the agent did not report it`, example);

const runtimeListener = component('RuntimeListener', 'A listener as its agent last reported it', {
  transport: documented(z.string(), 'QUIC listens on udp', 'tcp'),
  listenAddr: documented(z.string(), 'IP address', '0.0.0.0'),
  listenPort: documented(z.int(), 'Port', 443),
  state: documented(z.string(), 'State in the words of the agent', 'running'),
  routes: documented(
    z.array(
      component('RuntimeRoute', 'A route as an agent reports it', {
        service: documented(z.string(), 'Name at the agent', `${sample.chain}/0`),
        payload: documented(z.string(), 'Payload that it carries', 'tcp'),
        outer: documented(z.string(), 'Transport around it', 'tcp'),
        security: documented(z.string(), 'How it is secured', 'tls'),
        matchKind: documented(z.string(), 'Kind of the match', 'sni'),
        matchValue: documented(z.string(), 'The value that must match', 'app.example'),
        nextHop: documented(z.string(), 'Next endpoint, or name of an interface', 'edge-2.example:443'),
        state: documented(
          z.string().nullable(),
          "Its own, such as `target_unreachable` or `target_unusable` of a REALITY hop; null for its listener's",
          null,
        ),
      }),
    ),
    'The routes that the agent runs',
  ),
  bytesIn: counter('Bytes received', 1_048_576),
  bytesOut: counter('Bytes sent', 524_288),
  activeSessions: counter('Sessions now', 3),
  totalSessions: counter('Sessions since its start', 120),
  errorSessions: counter('Sessions that failed', 1),
});

const runtimeNode = component('RuntimeNode', 'A node with the listeners of its last heartbeat', {
  nodeId,
  name: documented(z.string(), 'Its name', 'edge-1'),
  status: nodeStatus,
  reportedAt: documented(time.nullable(), 'When the heartbeat came; null for a node without a report', sample.later),
  stale: documented(z.boolean(), 'Whether the node is offline, so that the report may be out of date', false),
  listeners: documented(z.array(runtimeListener), 'Listeners that match the query'),
});
const runtimeTable = z
  .object({ nodes: documented(z.array(runtimeNode), 'By name') })
  .meta({ description: 'The listeners that agents reported' });
type RuntimeNode = Shown<typeof runtimeNode>;

const filters = query({
  node_id: uuid.optional().meta({ description: 'Only this node' }),
  transport: oneOf(policyTransports).optional().meta({ description: 'Only listeners of this transport' }),
  listen_addr: ip.optional().meta({ description: 'Only listeners of this address, in any notation' }),
  listen_port: queryInteger(1, 65_535, 'Only listeners of this port').optional(),
  intended: queryBoolean('Only listeners that are in a deployed definition, or in none').optional(),
});
type Filters = z.output<typeof filters>;

export function portRuntimeRoutes(app: RestApp, deps: RestDeps): void {
  app.get('/api/nodes/ports/runtime', {
    config: { access: 'anyone', takes: 'none' },
    schema: {
      operationId: 'listRuntimePorts',
      summary: 'List the listeners that agents last reported',
      description:
        'The listeners of the last heartbeats that match the query. A node without a report has `reportedAt: null`, one without a match an empty list.',
      querystring: filters,
      response: answers(runtimeTable),
    },
    handler: async (request, reply) => sendPieces(reply, runtimePieces(deps, request.query)),
  });
}

async function* runtimePieces(deps: RestDeps, wanted: Filters): AsyncGenerator<string, void> {
  const all = deps.fleet.allNodes();
  const shown = wanted.node_id === undefined ? all : all.filter(({ id }) => id === wanted.node_id);
  yield '{"nodes":';
  yield* listInPieces(shown, (slice): readonly RuntimeNode[] => {
    return nodeOptions(deps, slice).map(({ id, name, status }) => ({
      nodeId: id,
      name,
      status,
      stale: status !== 'online',
      ...shownOf(deps.reports.listeners(id), deps.fleet.liveListeners(id), wanted),
    }));
  });
  yield '}';
}

function shownOf(
  report: ReportedListeners | undefined,
  live: ReadonlySet<string>,
  wanted: Filters,
): Pick<RuntimeNode, 'reportedAt' | 'listeners'> {
  if (report === undefined) return { reportedAt: null, listeners: [] };
  const listeners = report.listeners
    .filter((listener) => matches(listener, wanted))
    .filter((listener) => wanted.intended === undefined || live.has(reportedKey(listener)) === wanted.intended)
    .map(listenerView);
  return { reportedAt: report.reported_at, listeners };
}

/** As `listenerKey` names it. */
function reportedKey({ transport, listen_addr, listen_port }: RuntimeListener): string {
  return listenerKey({ transport, listenAddr: listen_addr, listenPort: listen_port });
}

/** Agents may write an address in another notation. */
function matches(listener: RuntimeListener, { transport, listen_addr, listen_port }: Filters): boolean {
  return (
    (transport === undefined || listener.transport === transport) &&
    (listen_port === undefined || listener.listen_port === listen_port) &&
    (listen_addr === undefined || plainIp(listener.listen_addr) === listen_addr)
  );
}

/** JSON leaves out the counters that are undefined. */
function listenerView(listener: RuntimeListener): RuntimeNode['listeners'][number] {
  return {
    transport: listener.transport,
    listenAddr: listener.listen_addr,
    listenPort: listener.listen_port,
    state: listener.state,
    routes: listener.routes.map(({ match_kind, match_value, next_hop, ...route }) => ({
      ...route,
      matchKind: match_kind,
      matchValue: match_value,
      nextHop: next_hop,
    })),
    bytesIn: listener.bytes_in,
    bytesOut: listener.bytes_out,
    activeSessions: listener.active_sessions,
    totalSessions: listener.total_sessions,
    errorSessions: listener.error_sessions,
  };
}

/**
 * What agents report of their listeners: the runtime table of each node's last heartbeat, as it came. Not what is intended
 * there: that is in `ports.ts`. Implements `docs/contract/rest.md#port-management`.
 */
import { z } from 'zod';
import { policyTransports } from '../../domain/listener-policy/policy.js';
import { canonicalIp } from '../../kernel/addresses.js';
import type { ReportedListeners, RuntimeListener } from '../../telemetry/port.js';
import type { RestApp, RestDeps } from './deps.js';
import { answers } from './envelope.js';
import { ip, oneOf, uuid } from './fields.js';
import { readHeaders } from './headers.js';
import { nodeOptions } from './node-options.js';
import { nodeStatuses } from './node-status.js';
import { listInPieces, sendPieces } from './pieces.js';
import { query, queryInteger } from './query.js';
import { time } from './shared-schemas.js';

const counter = z.number().optional().meta({ description: 'Absent when the agent did not report it' });

const runtimeListener = z
  .object({
    transport: z.string(),
    listenAddr: z.string(),
    listenPort: z.int(),
    state: z.string(),
    routes: z.array(
      z.object({
        service: z.string(),
        payload: z.string(),
        outer: z.string(),
        security: z.string(),
        matchKind: z.string(),
        matchValue: z.string(),
        nextHop: z.string(),
      }),
    ),
    bytesIn: counter,
    bytesOut: counter,
    activeSessions: counter,
    totalSessions: counter,
    errorSessions: counter,
  })
  .meta({ id: 'RuntimeListener' });

const runtimeNode = z
  .object({
    nodeId: z.string(),
    name: z.string(),
    status: z.enum(nodeStatuses),
    reportedAt: time.nullable().meta({ description: 'Null for a node without a report' }),
    listeners: z.array(runtimeListener),
  })
  .meta({ id: 'RuntimeNode' });
type RuntimeNode = z.output<typeof runtimeNode>;

const filters = query({
  node_id: uuid.optional().meta({ description: 'Only this node' }),
  transport: oneOf(policyTransports).optional().meta({ description: 'Only listeners of this transport' }),
  listen_addr: ip.optional().meta({ description: 'Only listeners of this address, in any notation' }),
  listen_port: queryInteger(1, 65_535, 'Only listeners of this port').optional(),
});
type Filters = z.output<typeof filters>;

export function portRuntimeRoutes(app: RestApp, deps: RestDeps): void {
  app.route({
    method: 'GET',
    url: '/api/nodes/ports/runtime',
    config: { access: 'anyone', takes: 'none' },
    schema: {
      operationId: 'listRuntimePorts',
      summary: 'The listeners that agents reported last',
      description:
        'The listeners of each last heartbeat that match the query. A node that has not reported stays with `reportedAt: null`, one without a match with an empty list.',
      tags: ['ports'],
      querystring: filters,
      headers: readHeaders,
      response: answers(z.object({ nodes: z.array(runtimeNode) })),
    },
    handler: async (request, reply) => sendPieces(reply, runtimePieces(deps, request.query)),
  });
}

async function* runtimePieces(deps: RestDeps, wanted: Filters): AsyncGenerator<string, void> {
  const all = deps.delivery.nodeNames();
  const shown = wanted.node_id === undefined ? all : all.filter(({ id }) => id === wanted.node_id);
  const online = await deps.telemetry.online();
  yield '{"nodes":';
  yield* listInPieces(shown, async (slice): Promise<readonly RuntimeNode[]> => {
    const [options, reports] = await Promise.all([
      nodeOptions(deps, slice, online),
      deps.telemetry.listeners(slice.map(({ id }) => id)),
    ]);
    return options.map(({ id, name, status }) => ({ nodeId: id, name, status, ...shownOf(reports.get(id), wanted) }));
  });
  yield '}';
}

function shownOf(
  report: ReportedListeners | undefined,
  wanted: Filters,
): Pick<RuntimeNode, 'reportedAt' | 'listeners'> {
  if (report === undefined) return { reportedAt: null, listeners: [] };
  const listeners = report.listeners.filter((listener) => matches(listener, wanted)).map(listenerView);
  return { reportedAt: report.reported_at, listeners };
}

/** Agents may write an address in another notation. */
function matches(listener: RuntimeListener, { transport, listen_addr, listen_port }: Filters): boolean {
  return (
    (transport === undefined || listener.transport === transport) &&
    (listen_port === undefined || listener.listen_port === listen_port) &&
    (listen_addr === undefined || (canonicalIp(listener.listen_addr) ?? listener.listen_addr) === listen_addr)
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

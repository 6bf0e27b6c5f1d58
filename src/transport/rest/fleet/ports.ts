/**
 * The port table: the intended listeners of each node, with their reported states. `port-runtime.ts` shows the full reports,
 * and `listener-policies.ts` saves policies. Implements `docs/contract/rest.md#port-management`.
 */
import { z } from 'zod';
import { policyTransports, priorityLabels } from '../../../domain/listener-policy/policy.js';
import { matchKinds, routeSources } from '../../../domain/listeners/intent.js';
import { listenerKey, type PortRow } from '../../../domain/port-table/port-table.js';
import { missing, stateNow } from '../../../reports/listener-states.js';
import type { RestApp, RestDeps } from '../deps.js';
import { answers, type Shown } from '../answers/envelope.js';
import { oneOf, uuid } from '../schemas/fields.js';
import { nodeOption, nodeOptions } from './node-status.js';
import { listInPieces, sendPieces } from '../answers/streamed-json.js';
import { query, queryBoolean, queryInteger } from '../schemas/query.js';
import { component, documented, sample } from '../schemas/documented.js';
import { idOf, listenerOrder } from '../schemas/shared-schemas.js';

const portItem = component('Port', 'An intended listener', {
  ...listenerOrder,
  policySaved: documented(z.boolean(), 'Whether the order comes from a saved policy', false),
  routes: documented(
    z.array(
      component('PortRoute', 'A route of a listener', {
        source: documented(z.enum(routeSources), 'Source of the route', 'l4_chain'),
        sourceLabel: documented(z.string(), 'Name of the source', 'front'),
        matchKind: documented(z.enum(matchKinds), 'Kind of the match', 'sni'),
        matchValue: documented(z.string(), 'The value that must match', 'app.example'),
        nextHop: documented(
          z.string(),
          'Next endpoint, or name of an interface; empty while no address is known',
          'edge-2.example:443',
        ),
        resourceType: documented(z.string(), 'Type of the resource that intends it', 'l4_chain'),
        resourceId: idOf('Id of the chain, route or network', sample.chain),
        resourceName: documented(z.string(), 'Name of the resource; the label may be that of an upstream', 'front'),
        deployed: documented(z.boolean(), 'Whether a deployed definition has it in this form', true),
      }),
    ),
    'By source, match kind and match value',
  ),
  runtimeState: documented(
    z.string().nullable(),
    `As the agent last reported it, \`${missing}\` for one that is deployed and that it did not report; null before a report, and while it is older than the last apply`,
    'running',
  ),
  runtimeStale: documented(z.boolean(), 'Whether the node is offline, so that the state may be out of date', false),
});
type PortItem = Shown<typeof portItem>;

const portTable = z
  .object({
    nodes: documented(z.array(nodeOption), 'All nodes, by name'),
    items: documented(z.array(portItem), 'The listeners'),
    defaultPriorityOrder: documented(z.array(z.enum(priorityLabels)), 'The order of a listener without a policy', [
      ...priorityLabels,
    ]),
  })
  .meta({ description: 'The port table' });

const filters = query({
  node_id: uuid.optional().meta({ description: 'Only listeners of this node' }),
  transport: oneOf(policyTransports).optional().meta({ description: 'Only listeners of this transport' }),
  listen_port: queryInteger(1, 65_535, 'Only listeners of this port').optional(),
  running: queryBoolean(
    'With `true`, only listeners reported as running; with `false`, only deployed ones that are not',
  ).optional(),
});
type Filters = z.output<typeof filters>;

export function portRoutes(app: RestApp, deps: RestDeps): void {
  app.get('/api/nodes/ports', {
    config: { access: 'anyone', takes: 'none' },
    schema: {
      operationId: 'listPorts',
      summary: 'List the intended listeners of each node, with their policies and states',
      description:
        'Sorted by node name, transport, port and address. `nodes` always lists all nodes. An unknown node_id has no items.',
      querystring: filters,
      response: answers(portTable),
    },
    handler: async (request, reply) => sendPieces(reply, tablePieces(deps, request.query)),
  });
}

async function* tablePieces(deps: RestDeps, wanted: Filters): AsyncGenerator<string, void> {
  const all = deps.fleet.allNodes();
  yield '{"nodes":';
  yield* listInPieces(all, (slice) => nodeOptions(deps, slice));
  yield ',"items":';
  const shown = wanted.node_id === undefined ? all : all.filter(({ id }) => id === wanted.node_id);
  yield* listInPieces(shown, (slice) => itemsOf(deps, slice, wanted));
  yield `,"defaultPriorityOrder":${JSON.stringify(priorityLabels)}}`;
}

/** The rows of these nodes that match the query, in order. */
function itemsOf(
  deps: RestDeps,
  nodes: readonly { readonly id: string }[],
  { transport, listen_port, running }: Filters,
): readonly PortItem[] {
  const rows = nodes
    .flatMap(({ id }) => deps.fleet.portRows(id))
    .filter((row) => transport === undefined || row.transport === transport)
    .filter((row) => listen_port === undefined || row.listenPort === listen_port);
  const items = rows.map((row): PortItem => ({
    nodeId: row.nodeId,
    transport: row.transport,
    listenAddr: row.listenAddr,
    listenPort: row.listenPort,
    priorityOrder: row.priorityOrder,
    policySaved: row.policySaved,
    routes: row.routes,
    runtimeState: runtimeState(deps, row),
    runtimeStale: deps.reports.presence(row.nodeId) === undefined,
  }));
  if (running === undefined) return items;
  return items.filter(({ runtimeState, routes }) =>
    running ? runtimeState === 'running' : runtimeState !== 'running' && routes.some(({ deployed }) => deployed),
  );
}

/** A listener that is not deployed cannot be missing. */
function runtimeState({ reports, agentFacts }: RestDeps, row: PortRow): string | null {
  const state = stateNow(reports.listenerStates(row.nodeId), agentFacts.of(row.nodeId), listenerKey(row));
  return state === missing && !row.routes.some(({ deployed }) => deployed) ? null : state;
}

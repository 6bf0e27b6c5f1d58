/**
 * The routes of nodes, and their filters. `node-view.ts` shows a node; `node-config.ts` has its snapshot, `node-psks.ts` its PSKs,
 * `node-commands.ts` the commands to its agent. Implements `docs/contract/rest.md#nodes`.
 */
import { z } from 'zod';
import type { NodeState } from '../../../domain/node/node.js';
import { nfc } from '../../../kernel/compare-text.js';
import type { ListOf, ListQuery } from '../../../kernel/list.js';
import { limits } from '../../../kernel/limits.js';
import { stateNow } from '../../../reports/listener-states.js';
import { nodeStatuses, statusOf, type NodeStatus } from '../../../reports/status.js';
import type { RestApp, RestDeps } from '../deps.js';
import { answers, ok } from '../answers/envelope.js';
import { boolean, canonical, list, oneOf } from '../schemas/fields.js';
import { orNotFound, pathId } from '../checks/path-id.js';
import { applyStates } from '../../../reports/apply-state.js';
import { controlPsk, sessionsEnded } from './node-psks.js';
import { nodeSchema, nodeShape, nodeView, applyOf, type NodeView } from './node-view.js';
import { sorting } from '../schemas/query.js';
import { listRanked } from './ranked-list.js';
import { resourceRoutes } from './resource-routes.js';
import { documented } from '../schemas/documented.js';
import { referrer } from '../schemas/shared-schemas.js';

const label = canonical('key:value or key', (value) =>
  value === '' || value.startsWith(':') ? undefined : nfc(value),
).meta({ minLength: 1 });

const filters = {
  status: oneOf(nodeStatuses).optional().meta({ description: 'Only nodes with this status' }),
  apply: documented(oneOf(applyStates).optional(), 'Only nodes whose newest generation is in this state'),
  listeners: documented(oneOf(['missing'] as const).optional(), 'Only nodes with a failed listener'),
  label: z
    .preprocess((value) => (typeof value === 'string' ? [value] : value), list(label, 1, limits.rest.labels))
    .optional()
    .meta({ description: 'Only nodes with all of these labels, each `key:value` or `key`', examples: [['region:eu']] }),
  sort: sorting('last_seen_at', '-last_seen_at', 'status', '-status').optional().meta({
    description: 'Order of the items, then by id; `-` reverses it. Nodes that were never seen always come last',
    default: 'name',
  }),
};
type Filters = z.output<z.ZodObject<typeof filters>>;

const createdSchema = nodeSchema
  .extend({ control_psk: controlPsk })
  .meta({ id: 'CreatedNode', description: 'The new node, with its PSK' });
type CreatedNodeView = NodeView & { readonly control_psk: string | null };

const referrersSchema = z
  .object({ items: documented(z.array(referrer), 'By type, name and id') })
  .meta({ description: 'The resources that use the node' });

export function nodeRoutes(app: RestApp, deps: RestDeps): void {
  const { nodes } = deps.commands;

  resourceRoutes(app, {
    path: '/api/nodes',
    what: 'node',
    rollsOut: true,
    names: { one: 'Node', many: 'Nodes' },
    summaries: {
      list: 'List nodes',
      create: 'Create a node; its PSK is shown only once',
      get: 'Get a node',
      update: 'Change a node',
      remove: 'Delete a node and end its session',
    },
    details: {
      list: 'A `label` is `key:value`, split at the first `:`, or `key` for any value. A node must match all of them.',
      create:
        "`control_psk` is the secret of the node's agent. Only this answer shows it; a repeat has null. With `issue_psk: false`, POST /api/nodes/{id}/psk issues the first one.",
      remove: 'Chains, routes and L3 networks that name the node use it, enabled or not. Its session ends at once.',
    },
    shape: nodeShape,
    schema: nodeSchema,
    createExtra: {
      issue_psk: documented(boolean().optional(), 'Whether to issue a PSK at once; default `true`', true),
    },
    createdSchema,
    filters,
    list: (paged, checked) => listNodes(deps, paged, checked as Filters),
    get: deps.fleet.nodes.get,
    create: (context, definition, checked) =>
      nodes.create(context, { ...definition, issuePsk: checked['issue_psk'] !== false }),
    createdView: ({ node, controlPsk }): CreatedNodeView => ({
      ...nodeView(deps, node),
      control_psk: controlPsk,
    }),
    // The secret itself is not stored.
    repeated: { control_psk: null },
    update: nodes.update,
    views: (all) => all.map((node) => nodeView(deps, node)),
    async remove(context, id, ifMatch) {
      const outcome = await nodes.remove(context, id, ifMatch);
      await sessionsEnded(deps, id, outcome);
      return outcome;
    },
  });

  app.get('/api/nodes/:id/referrers', {
    config: { access: 'anyone', takes: 'none' },
    schema: {
      operationId: 'listReferrersOfNode',
      summary: 'List the chains, routes and L3 networks that use a node',
      description:
        'Those that name it in their current or deployed definition, enabled or not. They keep the node from being deleted.',
      response: answers(referrersSchema),
    },
    handler: (request) => {
      const { id } = orNotFound(deps.fleet.node(pathId(request.params, 'node')), 'node');
      return ok({ items: deps.fleet.referrers('node', id) });
    },
  });
}

function listNodes(
  deps: RestDeps,
  paged: ListQuery,
  { status, apply, listeners, label = [], sort }: Filters,
): ListOf<NodeState> {
  const conditions = [
    ...label.map(labelFilter),
    ...(status === undefined ? [] : [hasStatus(deps, status)]),
    ...(apply === undefined ? [] : [({ id }: NodeState) => applyOf(deps, id).state === apply]),
    ...(listeners === undefined ? [] : [lacksListener(deps)]),
  ];
  const matches = (node: NodeState): boolean => conditions.every((holds) => holds(node));
  const query = { ...paged, matches, mentions: mentionsOf(deps) };
  const rank = rankOf(deps, sort);
  return rank === undefined ? deps.fleet.nodes.list(query) : listRanked(deps.fleet.nodes, query, sort ?? 'name', rank);
}

type NodeFilter = (node: NodeState) => boolean;

function labelFilter(label: string): NodeFilter {
  const [key = '', ...rest] = label.split(':');
  const value = rest.length === 0 ? undefined : rest.join(':');
  return ({ labels }) => Object.hasOwn(labels, key) && (value === undefined || labels[key] === value);
}

function lacksListener({ fleet, reports, agentFacts }: RestDeps): NodeFilter {
  return ({ id }) => {
    const [states, facts] = [reports.listenerStates(id), agentFacts.of(id)];
    return [...fleet.liveListeners(id)].some((key) => (stateNow(states, facts, key) ?? 'running') !== 'running');
  };
}

const hasStatus =
  (deps: RestDeps, status: NodeStatus): NodeFilter =>
  ({ id }) =>
    statusOf(deps, id) === status;

/** Whether `q` finds a node by more than its name: by addresses, the agent's version, labels. */
function mentionsOf({ agentFacts }: RestDeps): (node: NodeState, searched: string) => boolean {
  return ({ id, address, labels }, searched) => {
    const { session, detected_addresses, agent_version } = agentFacts.of(id);
    const reported = [session?.public_ipv4, session?.public_ipv6, ...detected_addresses, agent_version];
    const texts = [address, ...reported, ...Object.entries(labels).flat()];
    return texts.some((text) => text?.toLowerCase().includes(searched) === true);
  };
}

/** The ranks for orders that do not follow a field. */
function rankOf(deps: RestDeps, sort: Filters['sort']): ((node: NodeState) => string | undefined) | undefined {
  switch (sort) {
    case 'last_seen_at':
    case '-last_seen_at':
      return ({ id }) => deps.reports.vitals(id).last_seen_at ?? undefined;
    case 'status':
    case '-status': {
      const order: readonly NodeStatus[] = ['offline', 'pending', 'online'];
      return ({ id }) => String(order.indexOf(statusOf(deps, id)));
    }
    default:
      return undefined;
  }
}

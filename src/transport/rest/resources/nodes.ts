/**
 * The routes of nodes: list with filters, create with a PSK, update, delete, a new PSK. How a node is shown is in
 * `node-view.ts`, its snapshot in `node-config.ts`, its agent's commands in `node-commands.ts`.
 * Implements `docs/contract/rest.md#nodes`.
 */
import { z } from 'zod';
import type { CommandOutcome } from '../../../commands/port.js';
import type { NodeState } from '../../../domain/node/node.js';
import { compareText } from '../../../kernel/compare-text.js';
import { limits } from '../../../kernel/limits.js';
import { stateNow } from '../../../reports/listener-states.js';
import { nodeStatuses, statusOf } from '../../../reports/status.js';
import type { NodeStatus } from '../../../reports/status.js';
import { commandContext, setCommandHeaders } from '../checks/consistency.js';
import type { RestApp, RestDeps } from '../deps.js';
import { answers, ok } from '../answers/envelope.js';
import { boolean, canonical, list, oneOf } from '../schemas/fields.js';
import { postHeaders, readHeaders } from '../schemas/headers.js';
import { idParams, orNotFound, pathId } from '../checks/path-id.js';
import type { ApplyState } from '../../../reports/apply-state.js';
import { applyState, applyStates } from '../../../reports/apply-state.js';
import { nodeSchema, nodeShape, nodeView, pskFingerprint, pushFacts } from './node-view.js';
import type { NodeView } from './node-view.js';
import { noQuery, sorting } from '../schemas/query.js';
import { resourceRoutes } from './resource-routes.js';
import { documented } from '../schemas/documented.js';
import { nodeId, referrer } from '../schemas/shared-schemas.js';

const label = canonical('key:value or key', (value) =>
  value === '' || value.startsWith(':') ? undefined : value,
).meta({ minLength: 1 });

const filters = {
  status: oneOf(nodeStatuses).optional().meta({ description: 'Only nodes with this status' }),
  apply: oneOf(applyStates).optional().meta({
    description: 'Only nodes in this state of their newest generation',
  }),
  listeners: oneOf(['missing'] as const)
    .optional()
    .meta({ description: 'Only nodes whose `listeners` has a failed one' }),
  label: z
    .preprocess((value) => (typeof value === 'string' ? [value] : value), list(label, 1, limits.rest.labels))
    .optional()
    .meta({ description: 'Only nodes with all of these labels, each `key:value` or `key`', examples: [['region:eu']] }),
  sort: sorting('last_seen_at', '-last_seen_at').optional().meta({
    description: 'Order of the items, with `-` backwards; then by id. Nodes that were never seen come last, either way',
    default: 'name',
  }),
};
type Filters = z.output<z.ZodObject<typeof filters>>;

const controlPsk = documented(
  z.string().nullable(),
  "The secret of the node's agent, shown this once; null in the answer of a repeat, or if none was issued",
  'svcpsk1_…',
);

const createdSchema = nodeSchema
  .extend({ control_psk: controlPsk })
  .meta({ id: 'CreatedNode', description: 'The new node, with its PSK' });
type CreatedNodeView = NodeView & { readonly control_psk: string | null };

const referrersSchema = z
  .object({ items: documented(z.array(referrer), 'By type, name and id') })
  .meta({ description: 'What names the node' });

const pskSchema = z
  .object({
    node_id: nodeId,
    control_psk: controlPsk,
    psk_fingerprint: documented(z.string().nullable(), 'Of the new PSK', pskFingerprint),
    sessions_ended: documented(z.boolean(), 'Whether all sessions of the old PSK have ended on every instance', true),
  })
  .meta({ id: 'NodePsk', description: 'The new PSK' });

export function nodeRoutes(app: RestApp, deps: RestDeps): void {
  const { nodes } = deps.commands;

  const view = (node: NodeState): NodeView => nodeView(deps, node);
  function get(id: string): NodeView | undefined {
    const node = deps.fleet.nodes.get(id);
    return node === undefined ? undefined : view(node);
  }

  resourceRoutes(app, {
    path: '/api/nodes',
    what: 'node',
    tag: 'nodes',
    names: { one: 'Node', many: 'Nodes' },
    summaries: {
      list: 'List nodes',
      create: 'Create a node; its PSK is shown this once',
      get: 'Get a node',
      update: 'Change a node',
      remove: 'Delete a node and end its session',
    },
    details: {
      list: 'A `label` is `key:value`, or `key` for any value; with several, all must hold. The first `:` separates them.',
      create:
        "`control_psk` is the secret of the node's agent, shown in this answer and never again: a repeat has null. With `issue_psk: false` there is none before POST /api/nodes/{id}/psk.",
      remove: 'A chain, route or L3 network that names the node uses it, enabled or not. Its session ends at once.',
    },
    shape: nodeShape,
    schema: nodeSchema,
    createExtra: {
      issue_psk: documented(boolean().optional(), 'Whether to issue a PSK at once; default `true`', true),
    },
    createdSchema,
    filters,
    async list(paged, checked) {
      const { status, apply, listeners, label = [], sort } = checked as Filters;
      const conditions = [...label.map(labelFilter), statusFilter(deps, status)];
      const matches = (node: NodeState): boolean => conditions.every((holds) => holds(node));
      const bySeen = sort === 'last_seen_at' || sort === '-last_seen_at';
      if (apply === undefined && listeners === undefined && !bySeen) {
        const { items, total } = deps.fleet.nodes.list({ ...paged, matches });
        return { items: items.map(view), total };
      }
      let { items } = deps.fleet.nodes.list({ ...paged, ...everyItem, ...(bySeen ? { sort: 'name' } : {}), matches });
      if (apply !== undefined) items = inState(deps, items, apply);
      if (listeners === 'missing') items = missingListeners(deps, items);
      if (bySeen) items = sortedBySeen(deps, items, sort === '-last_seen_at' ? -1 : 1);
      const first = (paged.page - 1) * paged.pageSize;
      const shown = items.slice(first, first + paged.pageSize);
      return { items: shown.map(view), total: items.length };
    },
    get,
    create: (context, definition, checked) =>
      nodes.create(context, { ...definition, issuePsk: checked['issue_psk'] !== false }),
    createdView: ({ node, controlPsk }): CreatedNodeView => ({
      ...view(node),
      control_psk: controlPsk,
    }),
    // The secret itself is not stored.
    repeated: { control_psk: null },
    update: nodes.update,
    view,
    async remove(context, id, ifMatch) {
      const outcome = await nodes.remove(context, id, ifMatch);
      await sessionsEnded(deps, id, outcome);
      return outcome;
    },
  });

  app.route({
    method: 'GET',
    url: '/api/nodes/:id/referrers',
    config: { access: 'anyone', takes: 'none' },
    schema: {
      operationId: 'listReferrersOfNode',
      summary: 'What runs on a node: the chains, routes and L3 networks that name it',
      description:
        'In their current or deployed definition, enabled or not. While there is one, the node cannot be deleted.',
      tags: ['nodes'],
      params: idParams,
      querystring: noQuery,
      headers: readHeaders,
      response: answers(referrersSchema),
    },
    handler: (request) => {
      const { id } = orNotFound(deps.fleet.node(pathId(request.params, 'node')), 'node');
      return ok({ items: [...deps.fleet.referrers('node', id)] });
    },
  });

  app.route({
    method: 'POST',
    url: '/api/nodes/:id/psk',
    config: { access: 'operator', takes: 'none' },
    schema: {
      operationId: 'resetNodePsk',
      summary: 'Replace the PSK; it is shown this once, and sessions of the old one end',
      description:
        'The old PSK stops working and its sessions end before the answer is sent, on every live instance; `sessions_ended` is false if that took longer than two seconds. The answer of a repeat has `control_psk: null`.',
      tags: ['nodes'],
      params: idParams,
      querystring: noQuery,
      headers: postHeaders,
      response: answers(pskSchema),
    },
    handler: async (request, reply) => {
      const id = pathId(request.params, 'node');
      const outcome = await nodes.issuePsk(commandContext(request), id);
      setCommandHeaders(reply, outcome);
      if (outcome.kind === 'repeated') {
        const node = orNotFound(get(outcome.resourceId), 'node');
        return ok({ node_id: node.id, control_psk: null, psk_fingerprint: node.psk_fingerprint, sessions_ended: true });
      }
      const { controlPsk, fingerprint } = outcome.result;
      const sessions_ended = await sessionsEnded(deps, id, outcome);
      return ok({ node_id: id, control_psk: controlPsk, psk_fingerprint: fingerprint, sessions_ended });
    },
  });
}

/** Waits until no session of a revoked node is left on any instance. */
function sessionsEnded(deps: RestDeps, id: string, outcome: CommandOutcome<unknown>): Promise<boolean> {
  const revision = outcome.kind === 'done' ? outcome.events.at(-1)?.revision : undefined;
  return deps.sessionsEnded(id, limits.agent.sessionsEndedWaitMs, revision);
}

type NodeFilter = (node: NodeState) => boolean;

function labelFilter(label: string): NodeFilter {
  const [key = '', ...rest] = label.split(':');
  const value = rest.length === 0 ? undefined : rest.join(':');
  return ({ labels }) => Object.hasOwn(labels, key) && (value === undefined || labels[key] === value);
}

const everyItem = { page: 1, pageSize: Number.MAX_SAFE_INTEGER } as const;

/** The nodes in a state of their newest generation. */
function inState(deps: RestDeps, nodes: readonly NodeState[], state: ApplyState['state']): readonly NodeState[] {
  return nodes.filter(({ id }) => {
    const push = pushFacts(deps, id, deps.reports.presence(id));
    return applyState(deps.fleet.generation(id) ?? null, deps.agentFacts.of(id), push).state === state;
  });
}

/** The nodes that lack a listener. */
function missingListeners({ fleet, reports, agentFacts }: RestDeps, nodes: readonly NodeState[]): readonly NodeState[] {
  return nodes.filter(({ id }) => {
    const [states, facts] = [reports.listenerStates(id), agentFacts.of(id)];
    return [...fleet.liveListeners(id)].some((key) => (stateNow(states, facts, key) ?? 'running') !== 'running');
  });
}

/** In the order of their last signs of life, those without one last. */
function sortedBySeen({ reports }: RestDeps, nodes: readonly NodeState[], sign: 1 | -1): readonly NodeState[] {
  const seen = new Map(nodes.map(({ id }) => [id, reports.vitals(id).last_seen_at ?? '']));
  return nodes.toSorted((a, b) => {
    const [left, right] = [seen.get(a.id) ?? '', seen.get(b.id) ?? ''];
    const never = Number(left === '') - Number(right === '');
    return never || sign * compareText(left, right) || compareText(a.id, b.id);
  });
}

function statusFilter(deps: RestDeps, status: NodeStatus | undefined): NodeFilter {
  if (status === undefined) return () => true;
  return ({ id }) => statusOf(deps, id) === status;
}

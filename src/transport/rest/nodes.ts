/**
 * Nodes: their list with its filters, create with a PSK, delete, and a new PSK. How a node is shown is in `node-view.ts`,
 * its snapshot in `node-config.ts`. Implements `docs/contract/rest.md#nodes`.
 */
import { z } from 'zod';
import type { NodeState } from '../../domain/node/node.js';
import { limits } from '../../kernel/limits.js';
import type { NodeListQuery } from '../../projections/port.js';
import type { PresenceFacts } from '../../telemetry/port.js';
import { commandContext, found, settle } from './consistency.js';
import type { RestApp, RestDeps } from './deps.js';
import { answers, ok } from './envelope.js';
import { boolean, canonical, oneOf } from './fields.js';
import { postHeaders } from './headers.js';
import { idParams, pathId } from './ids.js';
import { newNodeView, nodeShape, nodeStatuses, nodeViews, oneNodeView, shownNode } from './node-view.js';
import type { NodeView } from './node-view.js';
import { noQuery } from './query.js';
import { resourceRoutes } from './resource-routes.js';

type NodeStatus = (typeof nodeStatuses)[number];

const filters = {
  status: oneOf(nodeStatuses).optional(),
  label: canonical('key:value', (value) => (value.indexOf(':') > 0 ? value : undefined)).optional(),
};
type Filters = z.output<z.ZodObject<typeof filters>>;

const createdNode = shownNode.extend({ control_psk: z.string().nullable() }).meta({ id: 'CreatedNode' });
type CreatedNodeView = NodeView & { readonly control_psk: string | null };

const pskSchema = z.object({
  node_id: z.string(),
  control_psk: z.string().nullable(),
  psk_fingerprint: z.string().nullable(),
  sessions_ended: z.boolean(),
});

export function nodeRoutes(app: RestApp, deps: RestDeps): void {
  const { nodes } = deps.commands;

  resourceRoutes(app, {
    path: '/api/nodes',
    what: 'node',
    tag: 'nodes',
    summaries: {
      list: 'List nodes',
      create: 'Create a node; its PSK is shown this once',
      get: 'Get a node',
      update: 'Change a node',
      remove: 'Delete a node and end its session',
    },
    shape: nodeShape,
    shown: shownNode,
    createExtra: { issue_psk: boolean().optional() },
    createShown: createdNode,
    filters,
    async list(query, asked) {
      const { status, label } = asked as Filters;
      const online = await deps.telemetry.online();
      const filtered = { ...query, label: readLabel(label), ids: idsOf(status, online) };
      const { items, total } = await deps.projections.nodes.list(filtered);
      return { items: await nodeViews(deps, items, online), total };
    },
    get: (id) => stored(deps, id),
    create: (context, definition, asked) =>
      nodes.create(context, { ...definition, issuePsk: asked['issue_psk'] !== false }),
    createdView: ({ node, controlPsk }): CreatedNodeView => ({
      ...newNodeView(deps, node),
      control_psk: controlPsk,
    }),
    // Only the hash of the secret was kept.
    repeated: { control_psk: null },
    update: nodes.update,
    view: (node) => shown(deps, node),
    async remove(context, id, ifMatch) {
      const outcome = await nodes.remove(context, id, ifMatch);
      await deps.sessionsEnded(id, limits.agent.sessionsEndedWaitMs);
      return outcome;
    },
  });

  app.route({
    method: 'POST',
    url: '/api/nodes/:id/psk',
    config: { access: 'operator', takes: 'none' },
    schema: {
      summary: 'Replace the PSK; it is shown this once, and sessions of the old one end',
      tags: ['nodes'],
      params: idParams,
      querystring: noQuery,
      headers: postHeaders,
      response: answers(pskSchema),
    },
    handler: async (request, reply) => {
      const id = pathId(request.params, 'node');
      const outcome = await nodes.issuePsk(commandContext(request), id);
      settle(reply, outcome);
      if (outcome.kind === 'repeated') {
        const node = found(await stored(deps, outcome.resourceId), 'node');
        return ok({ node_id: node.id, control_psk: null, psk_fingerprint: node.psk_fingerprint, sessions_ended: true });
      }
      const { controlPsk, fingerprint } = outcome.result;
      const sessions_ended = await deps.sessionsEnded(id, limits.agent.sessionsEndedWaitMs);
      return ok({ node_id: id, control_psk: controlPsk, psk_fingerprint: fingerprint, sessions_ended });
    },
  });
}

async function stored(deps: RestDeps, id: string): Promise<NodeView | undefined> {
  const record = await deps.projections.nodes.get(id);
  return record === undefined ? undefined : oneNodeView(deps, record.node, record.agent);
}

/** A node as a command left it, with what is known of its agent. */
async function shown(deps: RestDeps, node: NodeState): Promise<NodeView> {
  const record = await deps.projections.nodes.get(node.id);
  return oneNodeView(deps, node, record?.agent);
}

function readLabel(label: string | undefined): NodeListQuery['label'] {
  if (label === undefined) return undefined;
  const at = label.indexOf(':');
  return { key: label.slice(0, at), value: label.slice(at + 1) };
}

/** Presence is not in the read models, so a status becomes the ids that it leaves. */
function idsOf(status: NodeStatus | undefined, online: ReadonlyMap<string, PresenceFacts>): NodeListQuery['ids'] {
  switch (status) {
    case undefined:
      return undefined;
    case 'online':
      return { in: [...online.keys()] };
    case 'offline':
      return { notIn: new Set(online.keys()), connectedOnce: true };
    case 'pending':
      return { notIn: new Set(online.keys()), connectedOnce: false };
  }
}

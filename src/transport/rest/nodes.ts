/**
 * Nodes: list, create, get, update, delete, PSK. The snapshot of a node is in `node-config.ts`, its view in
 * `node-view.ts`. Implements `docs/contract/rest.md#nodes`.
 */
import { z } from 'zod';
import type { NodeState } from '../../commands/handlers-port.js';
import { limits } from '../../kernel/limits.js';
import type { NodeListQuery } from '../../projections/port.js';
import type { PresenceFacts } from '../../telemetry/port.js';
import { commandContext, found, settle } from './consistency.js';
import type { RestApp, RestDeps } from './deps.js';
import { answers, created, nothing, ok, pageOf } from './envelope.js';
import { body, boolean, canonical, description, host, labels, name, oneOf } from './fields.js';
import { conditionalHeaders, etag, postHeaders, readHeaders } from './headers.js';
import { idParams, pathId } from './ids.js';
import { newNodeView, nodeFields, nodeSchema, nodeViews, oneNodeView } from './node-view.js';
import type { NodeView } from './node-view.js';
import { listQuery, listing, noQuery, query } from './query.js';

const createBody = body({
  name,
  description: description.optional(),
  address: host.nullable().optional(),
  labels: labels.optional(),
  issue_psk: boolean().optional(),
});

const updateBody = body({
  name: name.optional(),
  description: description.optional(),
  address: host.nullable().optional(),
  labels: labels.optional(),
});

const statusNames = ['pending', 'online', 'offline'] as const;
type NodeStatus = (typeof statusNames)[number];

const listQuerystring = query({
  ...listing,
  status: oneOf(statusNames).optional(),
  label: canonical('key:value', (value) => (value.indexOf(':') > 0 ? value : undefined)).optional(),
});

const createdNode = z.object({ ...nodeFields, control_psk: z.string().nullable() }).meta({ id: 'CreatedNode' });

const pskSchema = z.object({
  node_id: z.string(),
  control_psk: z.string().nullable(),
  psk_fingerprint: z.string().nullable(),
  sessions_ended: z.boolean(),
});

const tags = ['nodes'];

export function nodeRoutes(app: RestApp, deps: RestDeps): void {
  const { nodes } = deps.commands;

  app.route({
    method: 'GET',
    url: '/api/nodes',
    config: { access: 'anyone', takes: 'none' },
    schema: {
      summary: 'List nodes',
      tags,
      querystring: listQuerystring,
      headers: readHeaders,
      response: answers(pageOf(nodeSchema)),
    },
    handler: async (request) => {
      const asked = listQuery(request.query);
      const online = await deps.telemetry.online();
      const { items, total } = await deps.projections.nodes.list({
        ...asked,
        label: readLabel(request.query.label),
        ids: idsOf(request.query.status, online),
      });
      return ok({ items: await nodeViews(deps, items, online), total, page: asked.page, page_size: asked.pageSize });
    },
  });

  app.route({
    method: 'POST',
    url: '/api/nodes',
    config: { access: 'operator', takes: 'json' },
    schema: {
      summary: 'Create a node; its PSK is shown this once',
      tags,
      querystring: noQuery,
      headers: postHeaders,
      body: createBody,
      response: created(createdNode),
    },
    handler: async (request, reply) => {
      const asked = request.body;
      const outcome = await nodes.create(commandContext(request), {
        name: asked.name,
        description: asked.description ?? null,
        address: asked.address ?? null,
        labels: asked.labels ?? {},
        issuePsk: asked.issue_psk ?? true,
      });
      await settle(reply, deps, outcome);
      const node =
        outcome.kind === 'done' ? newNodeView(deps, outcome.result.node) : await stored(deps, outcome.resourceId);
      // A repeat can't show the secret again: only its hash was kept.
      const control_psk = outcome.kind === 'done' ? outcome.result.controlPsk : null;
      return reply
        .code(201)
        .header('location', `/api/nodes/${node.id}`)
        .send(ok({ ...node, control_psk }));
    },
  });

  app.route({
    method: 'GET',
    url: '/api/nodes/:id',
    config: { access: 'anyone', takes: 'none' },
    schema: {
      summary: 'Get a node',
      tags,
      params: idParams,
      querystring: noQuery,
      headers: readHeaders,
      response: answers(nodeSchema),
    },
    handler: async (request, reply) => {
      const node = await stored(deps, pathId(request.params, 'node'));
      void reply.header('etag', etag(node.version));
      return ok(node);
    },
  });

  app.route({
    method: 'PUT',
    url: '/api/nodes/:id',
    config: { access: 'operator', takes: 'json' },
    schema: {
      summary: 'Change a node',
      tags,
      params: idParams,
      querystring: noQuery,
      headers: conditionalHeaders,
      body: updateBody,
      response: answers(nodeSchema),
    },
    handler: async (request, reply) => {
      const id = pathId(request.params, 'node');
      const outcome = await nodes.update(commandContext(request), id, request.headers['if-match'], request.body);
      await settle(reply, deps, outcome);
      return ok(outcome.kind === 'done' ? await shown(deps, outcome.result) : await stored(deps, id));
    },
  });

  app.route({
    method: 'DELETE',
    url: '/api/nodes/:id',
    config: { access: 'operator', takes: 'none' },
    schema: {
      summary: 'Delete a node and end its session',
      tags,
      params: idParams,
      querystring: noQuery,
      headers: conditionalHeaders,
      response: answers(nothing),
    },
    handler: async (request, reply) => {
      const id = pathId(request.params, 'node');
      const outcome = await nodes.remove(commandContext(request), id, request.headers['if-match']);
      await Promise.all([settle(reply, deps, outcome), deps.sessionsEnded(id, limits.agent.sessionsEndedWaitMs)]);
      return ok({});
    },
  });

  app.route({
    method: 'POST',
    url: '/api/nodes/:id/psk',
    config: { access: 'operator', takes: 'none' },
    schema: {
      summary: 'Replace the PSK; it is shown this once, and sessions of the old one end',
      tags,
      params: idParams,
      querystring: noQuery,
      headers: postHeaders,
      response: answers(pskSchema),
    },
    handler: async (request, reply) => {
      const id = pathId(request.params, 'node');
      const outcome = await nodes.issuePsk(commandContext(request), id);
      if (outcome.kind === 'repeated') {
        await settle(reply, deps, outcome);
        const node = await stored(deps, outcome.resourceId);
        return ok({ node_id: node.id, control_psk: null, psk_fingerprint: node.psk_fingerprint, sessions_ended: true });
      }
      const [sessions_ended] = await Promise.all([
        deps.sessionsEnded(id, limits.agent.sessionsEndedWaitMs),
        settle(reply, deps, outcome),
      ]);
      const { controlPsk, fingerprint } = outcome.result;
      return ok({ node_id: id, control_psk: controlPsk, psk_fingerprint: fingerprint, sessions_ended });
    },
  });
}

async function stored(deps: RestDeps, id: string): Promise<NodeView> {
  const { node, agent } = found(await deps.projections.nodes.get(id), 'node');
  return oneNodeView(deps, node, agent);
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

/**
 * L4 chains: list, create, get, update, delete, plan. Deploying is in `deployments.ts`, what a body may hold in
 * `chain-schema.ts`. Implements `docs/contract/rest.md#l4-chains`.
 */
import { z } from 'zod';
import { commandContext, found, settle } from './consistency.js';
import { createChainBody, keptHop, keptTarget, updateChainBody } from './chain-schema.js';
import { chainSchema, chainView } from './chain-view.js';
import type { ChainView } from './chain-view.js';
import type { RestApp, RestDeps } from './deps.js';
import { answers, created, nothing, ok, pageOf } from './envelope.js';
import { conditionalHeaders, etag, postHeaders, readHeaders } from './headers.js';
import { idParams, pathId } from './ids.js';
import { listQuery, listing, noQuery, query } from './query.js';

const planSchema = z.object({
  nodes: z.array(
    z.object({
      node_id: z.string(),
      added: z.array(z.string()),
      changed: z.array(z.string()),
      removed: z.array(z.string()),
    }),
  ),
  collisions: z.array(z.string()),
});

const tags = ['l4-chains'];

export function chainRoutes(app: RestApp, deps: RestDeps): void {
  const { chains } = deps.commands;

  app.route({
    method: 'GET',
    url: '/api/l4-chains',
    config: { access: 'anyone', takes: 'none' },
    schema: {
      summary: 'List L4 chains',
      tags,
      querystring: query(listing),
      headers: readHeaders,
      response: answers(pageOf(chainSchema)),
    },
    handler: async (request) => {
      const asked = listQuery(request.query);
      const { items, total } = await deps.projections.chains.list(asked);
      return ok({ items: items.map(chainView), total, page: asked.page, page_size: asked.pageSize });
    },
  });

  app.route({
    method: 'POST',
    url: '/api/l4-chains',
    config: { access: 'operator', takes: 'json' },
    schema: {
      summary: 'Create an L4 chain; nothing runs before it is deployed',
      tags,
      querystring: noQuery,
      headers: postHeaders,
      body: createChainBody,
      response: created(chainSchema),
    },
    handler: async (request, reply) => {
      const asked = request.body;
      const outcome = await chains.create(commandContext(request), {
        name: asked.name,
        description: asked.description ?? null,
        enabled: asked.enabled ?? true,
        payload: asked.payload,
        hops: asked.hops.map(keptHop),
        target: keptTarget(asked.target),
      });
      await settle(reply, deps, outcome);
      const shown = outcome.kind === 'done' ? chainView(outcome.result) : await storedChain(deps, outcome.resourceId);
      return reply.code(201).header('location', `/api/l4-chains/${shown.id}`).send(ok(shown));
    },
  });

  app.route({
    method: 'GET',
    url: '/api/l4-chains/:id',
    config: { access: 'anyone', takes: 'none' },
    schema: {
      summary: 'Get an L4 chain',
      tags,
      params: idParams,
      querystring: noQuery,
      headers: readHeaders,
      response: answers(chainSchema),
    },
    handler: async (request, reply) => {
      const shown = await storedChain(deps, pathId(request.params, 'L4 chain'));
      void reply.header('etag', etag(shown.version));
      return ok(shown);
    },
  });

  app.route({
    method: 'PUT',
    url: '/api/l4-chains/:id',
    config: { access: 'operator', takes: 'json' },
    schema: {
      summary: 'Change an L4 chain; what is deployed stays until the next deploy',
      tags,
      params: idParams,
      querystring: noQuery,
      headers: conditionalHeaders,
      body: updateChainBody,
      response: answers(chainSchema),
    },
    handler: async (request, reply) => {
      const id = pathId(request.params, 'L4 chain');
      const { hops, target, ...asked } = request.body;
      const outcome = await chains.update(commandContext(request), id, request.headers['if-match'], {
        ...asked,
        hops: hops?.map(keptHop),
        target: target === undefined ? undefined : keptTarget(target),
      });
      await settle(reply, deps, outcome);
      return ok(outcome.kind === 'done' ? chainView(outcome.result) : await storedChain(deps, id));
    },
  });

  app.route({
    method: 'DELETE',
    url: '/api/l4-chains/:id',
    config: { access: 'operator', takes: 'none' },
    schema: {
      summary: 'Delete an L4 chain, at once where it is deployed',
      tags,
      params: idParams,
      querystring: noQuery,
      headers: conditionalHeaders,
      response: answers(nothing),
    },
    handler: async (request, reply) => {
      const id = pathId(request.params, 'L4 chain');
      await settle(reply, deps, await chains.remove(commandContext(request), id, request.headers['if-match']));
      return ok({});
    },
  });

  app.route({
    method: 'GET',
    url: '/api/l4-chains/:id/plan',
    config: { access: 'anyone', takes: 'none' },
    schema: {
      summary: 'What a deploy would change now; writes nothing',
      tags,
      params: idParams,
      querystring: noQuery,
      headers: readHeaders,
      response: answers(planSchema),
    },
    handler: async (request, reply) => {
      const id = pathId(request.params, 'L4 chain');
      // Version and plan come from the same fold, in one turn of the event loop: they belong together.
      const chain = found(deps.delivery.chain(id), 'L4 chain');
      const { nodes, collisions } = found(deps.delivery.plan(id), 'L4 chain');
      void reply.header('etag', etag(chain.version));
      return ok({
        nodes: nodes.map((node) => ({
          node_id: node.node_id,
          added: [...node.added],
          changed: [...node.changed],
          removed: [...node.removed],
        })),
        collisions: [...collisions],
      });
    },
  });
}

export async function storedChain(deps: RestDeps, id: string): Promise<ChainView> {
  return chainView(found(await deps.projections.chains.get(id), 'L4 chain'));
}

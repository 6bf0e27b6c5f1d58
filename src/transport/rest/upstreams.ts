/** L4 upstreams: where chains end. Implements `docs/contract/rest.md#l4-upstreams`. */
import { z } from 'zod';
import type { UpstreamState } from '../../commands/handlers-port.js';
import { limits } from '../../kernel/limits.js';
import { commandContext, found, settle } from './consistency.js';
import type { RestApp, RestDeps } from './deps.js';
import { answers, created, nothing, ok, pageOf } from './envelope.js';
import { body, boolean, distinct, dnsName, endpoint, integer, name, upstreamTls } from './fields.js';
import { conditionalHeaders, etag, postHeaders, readHeaders } from './headers.js';
import { idParams, pathId } from './ids.js';
import { listQuery, listing, noQuery, query } from './query.js';
import { timestamps } from './shared-schemas.js';

const interval = limits.rest.healthCheckIntervalMs;

const settable = {
  server_names: distinct(dnsName).optional(),
  health_check_interval_ms: integer(interval.min, interval.max).optional(),
  tls: upstreamTls.nullable().optional(),
};

const createBody = body({ name, endpoint, ...settable });
const updateBody = body({ endpoint: endpoint.optional(), enabled: boolean().optional(), ...settable });

const upstream = z
  .object({
    id: z.string(),
    name: z.string(),
    endpoint: z.string(),
    server_names: z.array(z.string()),
    health_check_interval_ms: z.int(),
    enabled: z.boolean(),
    tls: z.object({ server_name: z.string(), spki_pins_sha256: z.array(z.string()) }).nullable(),
    ...timestamps,
  })
  .meta({ id: 'Upstream' });

const tags = ['l4-upstreams'];

export function upstreamRoutes(app: RestApp, deps: RestDeps): void {
  const { upstreams } = deps.commands;

  app.route({
    method: 'GET',
    url: '/api/l4-upstreams',
    config: { access: 'anyone', takes: 'none' },
    schema: {
      summary: 'List L4 upstreams',
      tags,
      querystring: query(listing),
      headers: readHeaders,
      response: answers(pageOf(upstream)),
    },
    handler: async (request) => {
      const asked = listQuery(request.query);
      const { items, total } = await deps.projections.upstreams.list(asked);
      return ok({ items: items.map(view), total, page: asked.page, page_size: asked.pageSize });
    },
  });

  app.route({
    method: 'POST',
    url: '/api/l4-upstreams',
    config: { access: 'operator', takes: 'json' },
    schema: {
      summary: 'Create an L4 upstream',
      tags,
      querystring: noQuery,
      headers: postHeaders,
      body: createBody,
      response: created(upstream),
    },
    handler: async (request, reply) => {
      const asked = request.body;
      const outcome = await upstreams.create(commandContext(request), {
        name: asked.name,
        endpoint: asked.endpoint,
        server_names: asked.server_names ?? [],
        health_check_interval_ms: asked.health_check_interval_ms ?? interval.default,
        tls: asked.tls ?? null,
      });
      await settle(reply, deps, outcome);
      const shown = outcome.kind === 'done' ? view(outcome.result) : await stored(deps, outcome.resourceId);
      return reply.code(201).header('location', `/api/l4-upstreams/${shown.id}`).send(ok(shown));
    },
  });

  app.route({
    method: 'GET',
    url: '/api/l4-upstreams/:id',
    config: { access: 'anyone', takes: 'none' },
    schema: {
      summary: 'Get an L4 upstream',
      tags,
      params: idParams,
      querystring: noQuery,
      headers: readHeaders,
      response: answers(upstream),
    },
    handler: async (request, reply) => {
      const shown = await stored(deps, pathId(request.params, 'L4 upstream'));
      void reply.header('etag', etag(shown.version));
      return ok(shown);
    },
  });

  app.route({
    method: 'PUT',
    url: '/api/l4-upstreams/:id',
    config: { access: 'operator', takes: 'json' },
    schema: {
      summary: 'Change an L4 upstream; its name stays',
      tags,
      params: idParams,
      querystring: noQuery,
      headers: conditionalHeaders,
      body: updateBody,
      response: answers(upstream),
    },
    handler: async (request, reply) => {
      const id = pathId(request.params, 'L4 upstream');
      const outcome = await upstreams.update(commandContext(request), id, request.headers['if-match'], request.body);
      await settle(reply, deps, outcome);
      return ok(outcome.kind === 'done' ? view(outcome.result) : await stored(deps, id));
    },
  });

  app.route({
    method: 'DELETE',
    url: '/api/l4-upstreams/:id',
    config: { access: 'operator', takes: 'none' },
    schema: {
      summary: 'Delete an L4 upstream that no chain uses',
      tags,
      params: idParams,
      querystring: noQuery,
      headers: conditionalHeaders,
      response: answers(nothing),
    },
    handler: async (request, reply) => {
      const id = pathId(request.params, 'L4 upstream');
      await settle(reply, deps, await upstreams.remove(commandContext(request), id, request.headers['if-match']));
      return ok({});
    },
  });
}

async function stored(deps: RestDeps, id: string): Promise<z.output<typeof upstream>> {
  return view(found(await deps.projections.upstreams.get(id), 'L4 upstream'));
}

function view(state: UpstreamState): z.output<typeof upstream> {
  return {
    id: state.id,
    name: state.name,
    endpoint: state.endpoint,
    server_names: [...state.server_names],
    health_check_interval_ms: state.health_check_interval_ms,
    enabled: state.enabled,
    tls:
      state.tls === null
        ? null
        : { server_name: state.tls.server_name, spki_pins_sha256: [...state.tls.spki_pins_sha256] },
    created_at: state.created_at,
    updated_at: state.updated_at,
    version: state.version,
  };
}

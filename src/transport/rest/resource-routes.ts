/**
 * The routes that every resource has: list, create, get, update, delete, with their headers, statuses and order of checks.
 * What is special about a resource stands in its own file, which also shows which routes it has.
 * Implements `docs/contract/rest.md#envelope`, `docs/contract/rest.md#errors` and `docs/contract/rest.md#consistency`.
 */
import type { z } from 'zod';
import type { CommandContext, CommandOutcome } from '../../commands/port.js';
import type { IfMatch } from '../../domain/resource/if-match.js';
import type { PartialUpdate } from '../../domain/resource/lifecycle.js';
import type { ListOf, ListQuery } from '../../projections/port.js';
import { commandContext, found, settle } from './consistency.js';
import type { RestApp } from './deps.js';
import { answers, created, nothing, ok, pageOf } from './envelope.js';
import { conditionalHeaders, etag, postHeaders, readHeaders } from './headers.js';
import { idParams, pathId } from './ids.js';
import { listQuery, listing, noQuery, query } from './query.js';
import type { Shape } from './resource-shape.js';
import { createBody, definitionAsked, updateAsked, updateBody } from './resource-shape.js';

interface Shown {
  readonly id: string;
  readonly version: number;
}

type Asked = { readonly [field: string]: unknown };

/**
 * @typeParam D the definition of the resource
 * @typeParam State what a command leaves
 * @typeParam View the resource as it is shown
 * @typeParam Created what a create leaves, which may hold a secret that is shown once
 */
export interface ResourceRoutes<D, State, View extends Shown, Created = State> {
  /** `/api/l4-upstreams`. */
  readonly path: string;
  /** As sentences name one: `L4 upstream`. */
  readonly what: string;
  readonly tag: string;
  readonly summaries: {
    readonly list: string;
    readonly create: string;
    readonly get: string;
    readonly update: string;
    readonly remove: string;
  };
  readonly shape: Shape<D>;
  /** What the schema of a field alone cannot tell; added to create and update bodies. */
  readonly check?: (asked: Asked, ctx: z.core.$RefinementCtx) => void;
  readonly shown: z.ZodType;
  /** Fields of a create that are not of the definition, and the answer when it shows more than a GET. */
  readonly createExtra?: { readonly [field: string]: z.ZodType };
  readonly createShown?: z.ZodType;
  /** Filters of the list beside those that every list has. */
  readonly filters?: { readonly [name: string]: z.ZodType };

  list(asked: ListQuery, filters: Asked): Promise<ListOf<View>>;
  get(id: string): Promise<View | undefined>;
  create(context: CommandContext, definition: D, asked: Asked): Promise<CommandOutcome<Created>>;
  update(
    context: CommandContext,
    id: string,
    ifMatch: IfMatch,
    changes: PartialUpdate<D>,
  ): Promise<CommandOutcome<State>>;
  remove(context: CommandContext, id: string, ifMatch: IfMatch): Promise<CommandOutcome<void>>;
  /** Called when the command is done and its headers are set: what fails here cannot hide that it was written. */
  view(state: State): View | Promise<View>;
  createdView(created: Created): View;
  /** What the repeat of a create shows beside the resource as it is now: one-time secrets as null. */
  readonly repeated?: Asked;
}

/** Adds the routes to the app. */
export function resourceRoutes<D, State, View extends Shown, Created = State>(
  app: RestApp,
  routes: ResourceRoutes<D, State, View, Created>,
): void {
  const { path, what, shape, summaries } = routes;
  const tags = [routes.tag];
  const check = routes.check ?? (() => undefined);
  const stored = async (id: string): Promise<View> => found(await routes.get(id), what);

  app.route({
    method: 'GET',
    url: path,
    config: { access: 'anyone', takes: 'none' },
    schema: {
      summary: summaries.list,
      tags,
      querystring: query({ ...listing, ...routes.filters }),
      headers: readHeaders,
      response: answers(pageOf(routes.shown)),
    },
    handler: async (request) => {
      const asked = listQuery(request.query as Parameters<typeof listQuery>[0]);
      const { items, total } = await routes.list(asked, request.query as Asked);
      return ok({ items: [...items], total, page: asked.page, page_size: asked.pageSize });
    },
  });

  app.route({
    method: 'POST',
    url: path,
    config: { access: 'operator', takes: 'json' },
    schema: {
      summary: summaries.create,
      tags,
      querystring: noQuery,
      headers: postHeaders,
      body: createBody(shape, routes.createExtra).superRefine(check),
      response: created(routes.createShown ?? routes.shown),
    },
    handler: async (request, reply) => {
      const asked = request.body as Asked;
      const outcome = await routes.create(commandContext(request), definitionAsked(shape, asked), asked);
      settle(reply, outcome);
      const shown =
        outcome.kind === 'done'
          ? routes.createdView(outcome.result)
          : { ...(await stored(outcome.resourceId)), ...routes.repeated };
      return reply.code(201).header('location', `${path}/${shown.id}`).send(ok(shown));
    },
  });

  app.route({
    method: 'GET',
    url: `${path}/:id`,
    config: { access: 'anyone', takes: 'none' },
    schema: {
      summary: summaries.get,
      tags,
      params: idParams,
      querystring: noQuery,
      headers: readHeaders,
      response: answers(routes.shown),
    },
    handler: async (request, reply) => {
      const shown = await stored(pathId(request.params, what));
      void reply.header('etag', etag(shown.version));
      return ok(shown);
    },
  });

  app.route({
    method: 'PUT',
    url: `${path}/:id`,
    config: { access: 'operator', takes: 'json' },
    schema: {
      summary: summaries.update,
      tags,
      params: idParams,
      querystring: noQuery,
      headers: conditionalHeaders,
      body: updateBody(shape).superRefine(check),
      response: answers(routes.shown),
    },
    handler: async (request, reply) => {
      const id = pathId(request.params, what);
      const changes = updateAsked<D>(request.body as Asked);
      const outcome = await routes.update(commandContext(request), id, request.headers['if-match'], changes);
      settle(reply, outcome);
      return ok(outcome.kind === 'done' ? await routes.view(outcome.result) : await stored(id));
    },
  });

  app.route({
    method: 'DELETE',
    url: `${path}/:id`,
    config: { access: 'operator', takes: 'none' },
    schema: {
      summary: summaries.remove,
      tags,
      params: idParams,
      querystring: noQuery,
      headers: conditionalHeaders,
      response: answers(nothing),
    },
    handler: async (request, reply) => {
      const id = pathId(request.params, what);
      settle(reply, await routes.remove(commandContext(request), id, request.headers['if-match']));
      return ok({});
    },
  });
}

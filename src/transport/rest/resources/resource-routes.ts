/**
 * The routes that every resource has: list, create, get, update, delete. The file of a resource calls this one and adds what is
 * special about it. Implements `docs/contract/rest.md#envelope`, `#errors` and `#consistency`.
 */
import type { FastifyRequest } from 'fastify';
import type { z } from 'zod';
import type { CommandContext, CommandOutcome } from '../../../commands/port.js';
import type { IfMatch } from '../../../domain/resource/refusal.js';
import type { PartialUpdate } from '../../../domain/resource/lifecycle.js';
import type { ListOf, ListQuery } from '../../../kernel/list.js';
import { commandContext, setCommandHeaders } from '../checks/consistency.js';
import type { RestApp } from '../deps.js';
import type { Access } from '../request-state.js';
import { answers, created, nothing, ok, pageOf } from '../answers/envelope.js';
import { etag } from '../schemas/headers.js';
import { orNotFound, pathId } from '../checks/path-id.js';
import { listAnswer, listQuery, listing, query } from '../schemas/query.js';
import {
  createBody,
  definitionReader,
  fileBody,
  ownFields,
  updateBody,
  type CheckedBody,
  type Schemas,
  type Shape,
} from './resource-shape.js';
import type { FieldsInFile, RouteConfig } from '../route-declaration.js';

interface Addressable {
  readonly id: string;
  readonly version: number;
  readonly managed_by?: string | null | undefined;
}

/** A state has `managed_by` only when a set owns the resource. */
const shown = <V extends Addressable>(view: V): V =>
  view.managed_by === undefined ? { ...view, managed_by: null } : view;

/** A resource in the answer of a command. */
function saved<V extends Addressable>({ warnings }: Pick<ResourceRoutes<never, never, V, never>, 'warnings'>, view: V) {
  return warnings === undefined ? shown(view) : { ...shown(view), warnings: warnings(view.id) };
}

/** Filters of a list that have passed their schemas. */
export type CheckedFilters = { readonly [name: string]: unknown };

/**
 * @typeParam D the definition of the resource
 * @typeParam State the resource as it is stored
 * @typeParam View the resource as a GET answers it
 * @typeParam Created what a create answers with, which may hold a secret that is shown once
 * @typeParam Updated what an update answers with, likewise
 */
export interface ResourceRoutes<D, State, View extends Addressable, Created = State, Updated = State> {
  /** `/api/l4-upstreams`. */
  readonly path: string;
  /** Its name in sentences: `L4 upstream`. */
  readonly what: string;
  /** Its commands may touch several nodes, and be rolled out. */
  readonly rollsOut?: true;
  /** Who may read and who may change it; absent: everybody, and operators. */
  readonly access?: { readonly read: Access; readonly write: Access };
  /** Its names in operations and schemas: `L4Upstream`, `L4Upstreams`. */
  readonly names: { readonly one: string; readonly many: string };
  readonly summaries: {
    readonly list: string;
    readonly create: string;
    readonly get: string;
    /** Absent when nobody can change one. */
    readonly update?: string;
    /** Absent when nobody can delete one. */
    readonly remove?: string;
  };
  /** Notes on single operations, added to those of every resource. */
  readonly details?: { readonly [operation in keyof ResourceRoutes<D, State, View>['summaries']]?: string };
  readonly shape: Shape<D>;
  /** Set when the bodies do not follow from the shape. */
  readonly bodies?: { readonly create: z.ZodType; readonly update?: z.ZodType };
  /** Checks fields against one another, in the bodies that follow from the shape. */
  readonly check?: (checked: CheckedBody, ctx: z.core.$RefinementCtx) => void;

  readonly schema: z.ZodType;
  /** Fields of a create that are not part of the definition. */
  readonly createExtra?: Schemas;
  /** The schema of a create's answer, when it differs from `schema`. */
  readonly createdSchema?: z.ZodType;
  /** The schema of an update's answer, when it differs from `schema`. */
  readonly updatedSchema?: z.ZodType;
  /** The warnings in the answers of a create and of an update, as `warnings` of their schemas. */
  readonly warnings?: (id: string) => readonly string[];
  /** Further filters of the list. */
  readonly filters?: Schemas;

  list(paged: ListQuery, filters: CheckedFilters, request: FastifyRequest): ListOf<State> | Promise<ListOf<State>>;
  get(id: string, request: FastifyRequest): State | undefined | Promise<State | undefined>;
  create(
    context: CommandContext,
    definition: D,
    checked: CheckedBody,
    request: FastifyRequest,
  ): Promise<CommandOutcome<Created>>;
  /** Absent when nobody can change one. */
  update?(
    context: CommandContext,
    id: string,
    ifMatch: IfMatch,
    changes: PartialUpdate<D>,
  ): Promise<CommandOutcome<Updated>>;
  /** Absent when nobody can delete one. */
  remove?(
    context: CommandContext,
    id: string,
    ifMatch: IfMatch,
    request: FastifyRequest,
  ): Promise<CommandOutcome<void>>;
  /**
   * Called once the headers are set, like the next two, so that a failure here still tells the caller that the command
   * was written. Absent: answers show what is stored.
   */
  views?(states: readonly State[]): readonly View[] | Promise<readonly View[]>;
  /** Absent when the commands answer with the state. */
  createdView?(created: Created): View | Promise<View>;
  updatedView?(updated: Updated): View | Promise<View>;
  /** Its form in documents of the fleet, when that does not follow from the shape; null for a resource that is not in them. */
  readonly inFile?: null | { readonly body?: z.ZodType; readonly fieldsOf?: FieldsInFile };
  /** Fields of a repeated create that replace those of the current resource: one-time secrets become null. */
  readonly repeated?: { readonly [field: string]: unknown };
}

/** Notes that hold for every resource. */
const rules = {
  list: 'Paged. A value out of range or an unknown query parameter is a 400; a page past the end is empty.',
  create: 'Answers with the whole resource and its path in `Location`.',
  get: 'The `ETag` is the version, for `If-Match`.',
  update:
    'Omitted fields stay; null clears a field that can be null. A change that changes nothing is a 200 and keeps the version.',
  remove: 'A resource that another one uses is a 409, which names the other one.',
};

const usualAccess = { read: 'anyone', write: 'operator' } as const;

const rollsOut = (routes: { readonly rollsOut?: true | undefined }): Pick<RouteConfig, 'rollsOut'> =>
  routes.rollsOut === undefined ? {} : { rollsOut: 'as planned' };

const acceptAll = (): void => undefined;

function sentences(rule: string, detail: string | undefined): string {
  return detail === undefined ? rule : `${rule} ${detail}`;
}

function inFile<D>(
  routes: Pick<ResourceRoutes<D, never, never, never>, 'path' | 'shape' | 'check' | 'inFile'>,
): Pick<RouteConfig, 'inFile'> {
  const { path, shape, check = acceptAll } = routes;
  if (routes.inFile === null) return {};
  const body = routes.inFile?.body ?? fileBody(shape).superRefine(check).transform(definitionReader(shape));
  const fieldsOf: FieldsInFile = routes.inFile?.fieldsOf ?? ((state) => ownFields(shape, state));
  return { inFile: { path, body, fieldsOf } };
}

/** How the routes show what is stored. */
interface Views<State, View> {
  all(states: readonly State[]): Promise<readonly View[]>;
  one(state: State | undefined): Promise<View>;
}

/** Adds the routes to the app. */
export function resourceRoutes<D, State, View extends Addressable, Created = State, Updated = State>(
  app: RestApp,
  routes: ResourceRoutes<D, State, View, Created, Updated>,
): void {
  const all = async (states: readonly State[]): Promise<readonly View[]> =>
    // Without `views`, a view is the state.
    routes.views?.(states) ?? (states as readonly unknown[] as readonly View[]);
  const one = async (state: State | undefined): Promise<View> =>
    orNotFound((await all(state === undefined ? [] : [state]))[0], routes.what);
  routesOfAll(app, routes, { all, one });
  routesOfOne(app, routes, { one });
  routeOfUpdate(app, routes, { one });
}

/** List and create. */
function routesOfAll<D, State, View extends Addressable, Created, Updated>(
  app: RestApp,
  routes: ResourceRoutes<D, State, View, Created, Updated>,
  views: Views<State, View>,
): void {
  const { path, shape, summaries, names, details = {}, access = usualAccess } = routes;
  const definitionIn = definitionReader(shape);

  app.get(path, {
    config: { access: access.read, takes: 'none' },
    schema: {
      operationId: `list${names.many}`,
      summary: summaries.list,
      description: sentences(rules.list, details.list),
      querystring: query({ ...listing, ...routes.filters }),
      response: answers(pageOf(routes.schema)),
    },
    handler: async (request) => {
      const checked = request.query as Parameters<typeof listQuery>[0];
      const { items, ...rest } = await routes.list(listQuery(checked), request.query as CheckedFilters, request);
      return ok(listAnswer(checked, { items: (await views.all(items)).map(shown), ...rest }));
    },
  });

  app.post(path, {
    config: { access: access.write, takes: 'json', ...inFile(routes), ...rollsOut(routes) },
    schema: {
      operationId: `create${names.one}`,
      summary: summaries.create,
      description: sentences(rules.create, details.create),
      body:
        routes.bodies?.create ??
        createBody(shape, routes.createExtra)
          .superRefine(routes.check ?? acceptAll)
          .meta({ id: `New${names.one}`, description: summaries.create }),
      response: created(routes.createdSchema ?? routes.schema),
    },
    handler: async (request, reply) => {
      const checked = request.body as CheckedBody;
      const outcome = await routes.create(commandContext(request), definitionIn(checked), checked, request);
      setCommandHeaders(reply, outcome);
      const view =
        outcome.kind === 'done'
          ? await (routes.createdView?.(outcome.result) ?? views.one(outcome.result as unknown as State))
          : { ...(await views.one(await routes.get(outcome.resourceId, request))), ...routes.repeated };
      return reply
        .code(201)
        .header('location', `${path}/${view.id}`)
        .send(ok(saved(routes, view)));
    },
  });
}

/** Get, and delete of a resource that somebody can delete. */
function routesOfOne<D, State, View extends Addressable, Created, Updated>(
  app: RestApp,
  routes: ResourceRoutes<D, State, View, Created, Updated>,
  views: Pick<Views<State, View>, 'one'>,
): void {
  const { path, what, summaries, names, details = {}, access = usualAccess, remove } = routes;

  app.get(`${path}/:id`, {
    config: { access: access.read, takes: 'none', sendsEtag: true },
    schema: {
      operationId: `get${names.one}`,
      summary: summaries.get,
      description: sentences(rules.get, details.get),
      response: answers(routes.schema),
    },
    handler: async (request, reply) => {
      const view = await views.one(await routes.get(pathId(request.params, what), request));
      void reply.header('etag', etag(view.version));
      return ok(shown(view));
    },
  });

  if (remove === undefined || summaries.remove === undefined) return;
  app.delete(`${path}/:id`, {
    config: { access: access.write, takes: 'none', refuses: ['conflict'], ...rollsOut(routes) },
    schema: {
      operationId: `delete${names.one}`,
      summary: summaries.remove,
      description: sentences(rules.remove, details.remove),
      response: answers(nothing),
    },
    handler: async (request, reply) => {
      const id = pathId(request.params, what);
      setCommandHeaders(reply, await remove(commandContext(request), id, request.headers['if-match'], request));
      return ok({});
    },
  });
}

/** Update, of a resource that somebody can change. */
function routeOfUpdate<D, State, View extends Addressable, Created, Updated>(
  app: RestApp,
  routes: ResourceRoutes<D, State, View, Created, Updated>,
  views: Pick<Views<State, View>, 'one'>,
): void {
  const { path, what, shape, summaries, names, details = {}, access = usualAccess, update } = routes;
  if (update === undefined || summaries.update === undefined) return;
  app.put(`${path}/:id`, {
    config: { access: access.write, takes: 'json', refuses: ['conflict'], ...rollsOut(routes) },
    schema: {
      operationId: `update${names.one}`,
      summary: summaries.update,
      description: sentences(rules.update, details.update),
      body:
        routes.bodies?.update ??
        updateBody(shape)
          .superRefine(routes.check ?? acceptAll)
          .meta({ id: `${names.one}Changes`, description: `${summaries.update}. Omitted fields stay` }),
      response: answers(routes.updatedSchema ?? routes.schema),
    },
    handler: async (request, reply) => {
      const id = pathId(request.params, what);
      const changes = request.body as PartialUpdate<D>;
      const outcome = await update(commandContext(request), id, request.headers['if-match'], changes);
      setCommandHeaders(reply, outcome);
      const view =
        outcome.kind === 'done'
          ? await (routes.updatedView?.(outcome.result) ?? views.one(outcome.result as unknown as State))
          : await views.one(await routes.get(id, request));
      return ok(saved(routes, view));
    },
  });
}

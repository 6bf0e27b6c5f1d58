/**
 * What every route must declare for the OpenAPI document. Types only; `openapi-document.ts` makes the document. Implements
 * `docs/contract/rest.md#beside-api`.
 */
import type { FastifyContextConfig, FastifySchema } from 'fastify';
import type { z } from 'zod';
import type { JsonObject } from '../../kernel/json.js';
import type { ErrorCode } from '../../kernel/errors.js';
import type { Access, BodyRule } from './request-state.js';

/** The schemas of a route, which validate requests, type the handler and are published, with their descriptions. */
export interface RouteSchema extends FastifySchema {
  /** The name of the method in generated clients, unique and stable: `listNodes`, `resetNodePsk`. */
  readonly operationId: string;
  /** One line. */
  readonly summary: string;
  /** Notes for callers, besides those on parameters, body and answers. */
  readonly description: string;
  /** Instead of the access token: none, or another token. */
  readonly security?: readonly { readonly [scheme: string]: readonly string[] }[];
  /** The media type of the answer, when it is not JSON. */
  readonly produces?: readonly [string];
  /** The stream that is sent instead when the request accepts its media type. */
  readonly streams?: { readonly media: string; readonly example: string };
  readonly params?: z.ZodType;
  readonly querystring?: z.ZodType;
  readonly headers?: z.ZodType;
  readonly body?: z.ZodType;
  /** Successful answers by status; failures follow from the rest (`openapi-failures.ts`). */
  readonly response: { readonly [status: number]: z.ZodType };
}

/** The fields of a state as a fleet document has them, without defaults; references are still ids. */
export type FieldsInFile = (state: object) => JsonObject;

/** A resource in documents of the fleet (`fleet-file/sections.ts`). */
export interface InFile {
  /** `/api/l4-upstreams` */
  readonly path: string;
  /** Checks the fields of one resource, including its name, and fills in defaults. */
  readonly body: z.ZodType;
  readonly fieldsOf: FieldsInFile;
}

export interface RouteConfig extends FastifyContextConfig {
  readonly access: Access;
  readonly takes: BodyRule;
  /** The answer carries the `ETag` of the resource. */
  readonly sendsEtag?: boolean;
  /** It may write nothing (a dry run), and then sends no `x-position`. */
  readonly mayOnlyLook?: boolean;
  /** It reads stored read models, so it waits until they hold what this instance answered before. */
  readonly readsStored?: boolean;
  /** Set on the route that creates a resource, when documents of the fleet have it too. */
  readonly inFile?: InFile;
  /** Failures that do not follow from access, parameters and body. */
  readonly refuses?: readonly ErrorCode[];
}

export interface DeclaredRoute {
  readonly method: string;
  /** `/api/nodes/:id` */
  readonly url: string;
  readonly schema: RouteSchema;
  readonly config: RouteConfig;
}

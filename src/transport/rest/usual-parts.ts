/**
 * What most routes under `/api` take: no query, the id of the path, and the headers of their method. Filled in where a route
 * declares nothing else, so that a route declares only what is its own.
 */
import type { z } from 'zod';
import { idParams } from './checks/path-id.js';
import type { DeclaredRoute, RouteSchema } from './route-declaration.js';
import { withRollout } from './checks/rolled-out.js';
import { conditionalHeaders, postHeaders, readHeaders } from './schemas/headers.js';
import { noQuery } from './schemas/query.js';

const headersOf: { readonly [method: string]: z.ZodType } = {
  GET: readHeaders,
  POST: postHeaders,
  PUT: conditionalHeaders,
  DELETE: conditionalHeaders,
};

export function withUsual(declared: DeclaredRoute): RouteSchema {
  const { method, url, config } = declared;
  const schema = withRollout(declared);
  if (config.access === 'open') return schema;
  const { params, querystring = noQuery, headers = headersOf[method] } = schema;
  const own = params ?? (url.includes('/:id') ? idParams : undefined);
  return { ...schema, querystring, ...(headers && { headers }), ...(own && { params: own }) };
}

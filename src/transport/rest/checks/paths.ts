/**
 * The methods of every path, for the gate: the router alone would answer another method as if the path did not exist, and
 * `DELETE /api/nodes/ports` as if `ports` were the id of a node. Implements `docs/contract/rest.md#envelope`.
 */
import type { FastifyRequest } from 'fastify';
import type { RestApp } from '../deps.js';
import { pathnameOf } from './correlation.js';

const methodOrder = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

/**
 * @returns the methods of a path, undefined when there is no such path; knows the routes that are added after the call
 */
export function collectMethods(app: RestApp): (path: string) => readonly string[] | undefined {
  const fixed = new Map<string, string[]>();
  const patterns: { readonly url: string; readonly matches: RegExp; readonly methods: string[] }[] = [];
  const methodsOfRoute = (url: string): string[] => {
    const known = fixed.get(url) ?? patterns.find((pattern) => pattern.url === url)?.methods;
    if (known !== undefined) return known;
    const methods: string[] = [];
    const pattern = url.replaceAll(/:\w+/g, '[^/]+').replace('*', '.*');
    if (pattern === url) fixed.set(url, methods);
    else patterns.push({ url, matches: new RegExp(`^${pattern}$`), methods });
    return methods;
  };
  app.addHook('onRoute', ({ method, url, config }) => {
    // The catch-all route of the CORS plugin is not an endpoint.
    if (config?.access === undefined) return;
    const methods = methodsOfRoute(url);
    methods.push(...[method].flat());
    methods.sort((a, b) => methodOrder.indexOf(a) - methodOrder.indexOf(b));
  });
  return (path) => fixed.get(path) ?? patterns.find(({ matches }) => matches.test(path))?.methods;
}

/** The path as the router reads it: without the query, and decoded. */
export function routedPath({ url }: FastifyRequest): string {
  return decodeURI(pathnameOf(url));
}

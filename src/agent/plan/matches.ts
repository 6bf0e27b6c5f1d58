/**
 * Which rule of a listener serves a connection or a request. By server name: an exact name before a wildcard, whose `*`
 * stands for exactly one label. By HTTP request: the exact host, then the longest path prefix that ends at a segment
 * boundary (`/api` matches `/api` and `/api/x`, not `/apix`); paths are compared without decoding them.
 * Pure. Implements `docs/contract/domain.md#listeners-and-collisions` and `HttpProxyRule` of
 * `docs/contract/wire.md#configuration`.
 */
import { getOrMake } from '../../kernel/maps.js';

/** Finds the rule of a listener by server name. */
export type NameTable<Rule> = (serverName: string) => Rule | undefined;

/** @param rules names as in the configuration, without duplicates */
export function createNameTable<Rule>(rules: Iterable<readonly [string, Rule]>): NameTable<Rule> {
  const exact = new Map<string, Rule>();
  /** By the part after the `*`, including its dot. */
  const wildcards = new Map<string, Rule>();
  for (const [text, rule] of rules) {
    const name = text.toLowerCase();
    if (name.startsWith('*.')) wildcards.set(name.slice(1), rule);
    else exact.set(name, rule);
  }
  return (serverName) => {
    const dot = serverName.indexOf('.');
    return exact.get(serverName) ?? (dot > 0 ? wildcards.get(serverName.slice(dot)) : undefined);
  };
}

/** @typeParam R how a request is relayed */
export interface HttpRoute<R> {
  readonly host: string;
  readonly pathPrefix: string;
  readonly route: R;
}

/**
 * Finds the route of a request.
 * @param host in lower case, without port
 * @param path with or without a query
 */
export type HttpRoutes<R> = (host: string, path: string) => R | undefined;

export function createHttpRoutes<R>(routes: readonly HttpRoute<R>[]): HttpRoutes<R> {
  const byHost = new Map<string, { readonly prefix: string; readonly route: R }[]>();
  for (const { host, pathPrefix, route } of routes) {
    getOrMake(byHost, host.toLowerCase(), () => []).push({ prefix: normalPrefix(pathPrefix), route });
  }
  for (const list of byHost.values()) list.sort((a, b) => b.prefix.length - a.prefix.length);
  return (host, path) => {
    const bare = path.replace(/[?#].*$/s, '');
    return byHost.get(host)?.find(({ prefix }) => bare === prefix || bare.startsWith(`${prefix}/`) || prefix === '')
      ?.route;
  };
}

/** A path prefix without its final slash, which makes no difference; empty: every path. */
export function normalPrefix(prefix: string): string {
  return prefix.replace(/\/+$/, '');
}

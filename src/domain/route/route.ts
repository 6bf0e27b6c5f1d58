/**
 * A legacy route: HTTP requests for a host and a path prefix enter at `hops[0]` and leave the last hop for the backend. It
 * needs no deploy: an enabled route is live once saved. Definition, and the rules of hops, by which REST checks bodies too.
 * Implements `docs/contract/domain.md#legacy-route`.
 */
import { repeatedNodes } from '../node/hops.js';
import type { ResourceKey } from '../resource/fleet-view.js';
import type { ResourceMeta } from '../resource/meta.js';
import type { Problem } from '../resource/rules.js';

export interface RouteHop {
  readonly node_id: string;
  /** An IP literal in canonical form. */
  readonly listen_addr: string;
  readonly listen_port: number;
}

export interface RouteDefinition {
  readonly name: string;
  readonly host: string;
  /** Starts with `/`. */
  readonly path_prefix: string;
  readonly enabled: boolean;
  readonly hops: readonly RouteHop[];
  /** `host:port`, IPv6 in brackets. */
  readonly backend: string;
}

export interface RouteState extends ResourceMeta, RouteDefinition {}

export const routeKey: ResourceKey<RouteState> = { type: 'route' };

/** What distinguishes two routes on one listener. It is unique, because a host has no `/`. */
export function matchOf({ host, path_prefix }: Pick<RouteDefinition, 'host' | 'path_prefix'>): string {
  return host + path_prefix;
}

/** Ids of the nodes of an enabled route. */
export function liveNodes(route: RouteDefinition | undefined): readonly string[] {
  return route?.enabled === true ? route.hops.map((hop) => hop.node_id) : [];
}

/** A node may be in a route only once. @param hops undefined in an edit without them */
export function* routeProblems(hops: readonly Pick<RouteHop, 'node_id'>[] = []): Generator<Problem> {
  for (const { index, earlier } of repeatedNodes(hops)) {
    const message = `expected each node at most once in a route; this one is already hops[${earlier}]`;
    yield { path: ['hops', index, 'node_id'], message };
  }
}

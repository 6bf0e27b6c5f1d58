/**
 * A legacy route: HTTP requests for a host and a path prefix enter at `hops[0]` and leave the last hop for the backend. It
 * is not deployed: what is saved is live while the route is enabled. State, events, commands.
 * Implements `docs/contract/domain.md#legacy-route`.
 */
import type { ResourceKey } from '../resource/fleet-view.js';
import type { LifecycleCommand, LifecycleEvent } from '../resource/lifecycle.js';
import { fieldsOf } from '../resource/lifecycle.js';
import type { ResourceMeta } from '../resource/meta.js';

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

export const routeFields = fieldsOf<RouteDefinition>()(['name', 'host', 'path_prefix', 'enabled', 'hops', 'backend']);

export interface RouteState extends ResourceMeta, RouteDefinition {}

export type RouteEvent = LifecycleEvent<'Route', 'route_id', RouteDefinition>;
export type RouteCommand = LifecycleCommand<'Route', RouteDefinition>;

export const routeKey: ResourceKey<RouteState> = { type: 'route' };

/** The key that distinguishes two routes on one listener. A host has no `/`, so no two pairs give the same text. */
export function matchOf({ host, path_prefix }: Pick<RouteDefinition, 'host' | 'path_prefix'>): string {
  return host + path_prefix;
}

/** Ids of the nodes of a route while it is live; none of a disabled one. */
export function liveNodes(route: RouteDefinition | undefined): readonly string[] {
  return route?.enabled === true ? route.hops.map((hop) => hop.node_id) : [];
}

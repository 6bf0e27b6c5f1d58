/**
 * The listeners that the current definition of an enabled chain intends.
 * Implements `docs/contract/domain.md#l4-chain`, listener intent.
 */
import type { IntendedListener, IntendedRoute } from '../listeners/intent.js';
import { dialEndpoint } from '../node/hops.js';
import type { FleetView } from '../resource/fleet-view.js';
import { upstreamAt } from '../upstream/upstream.js';
import type { ChainDefinition, ChainState, Hop } from './chain.js';
import { upstreamOf } from './chain.js';
import { hopTransport } from './claims.js';

/** The listeners that a chain intends on a node; none while it is disabled. */
export function intendedByChain(fleet: FleetView, chain: ChainState, nodeId: string): readonly IntendedListener[] {
  const index = chain.hops.findIndex((hop) => hop.node_id === nodeId);
  const hop = chain.hops[index];
  if (!chain.enabled || hop === undefined) return [];
  const { listen_addr: listenAddr, listen_port: listenPort } = hop;
  const routes = routesOf(fleet, chain, index, hop);
  return [{ nodeId, transport: hopTransport(hop), listenAddr, listenPort, routes }];
}

/** One route per server name; a RAW hop without names is the default route. */
function routesOf(fleet: FleetView, chain: ChainState, index: number, hop: Hop): readonly IntendedRoute[] {
  const upstreamId = upstreamBehind(chain, index);
  const upstream = upstreamAt(fleet, upstreamId);
  const source = upstream === undefined ? 'l4_chain' : 'l4_upstream';
  const sourceLabel = upstream?.name ?? chain.name;
  const nextHop = nextHopOf(fleet, chain, index);
  return matchesOf(hop).map(([matchKind, matchValue]) => ({
    source,
    sourceLabel,
    matchKind,
    matchValue,
    nextHop,
    resourceId: chain.id,
    deployed: isDeployed(fleet, chain, { hop, matchValue, nextHop, upstreamId }),
  }));
}

function matchesOf(hop: Hop): readonly (readonly ['sni' | 'default', string])[] {
  const names = hop.server_names ?? [];
  return names.length === 0 ? [['default', '']] : names.map((name) => ['sni', name] as const);
}

function nextHopOf(fleet: FleetView, definition: ChainDefinition, index: number): string {
  const next = definition.hops[index + 1];
  if (next !== undefined) return dialEndpoint(fleet, next);
  const { target } = definition;
  return 'endpoint' in target ? target.endpoint : (upstreamAt(fleet, target.upstream_id)?.endpoint ?? '');
}

/** The id of the upstream that a hop leads to; undefined for all but the last hop. */
function upstreamBehind(definition: ChainDefinition, index: number): string | undefined {
  return index === definition.hops.length - 1 ? upstreamOf(definition) : undefined;
}

interface CurrentRoute {
  readonly hop: Hop;
  readonly matchValue: string;
  readonly nextHop: string;
  readonly upstreamId: string | undefined;
}

/** Whether the deployed definition has the same route. */
function isDeployed(
  fleet: FleetView,
  chain: ChainState,
  { hop, matchValue, nextHop, upstreamId }: CurrentRoute,
): boolean {
  const { deployed } = chain;
  if (deployed === null || deployed.payload !== chain.payload) return false;
  const index = deployed.hops.findIndex((other) => other.node_id === hop.node_id);
  const other = deployed.hops[index];
  return (
    other !== undefined &&
    other.listen_addr === hop.listen_addr &&
    other.listen_port === hop.listen_port &&
    other.outer === hop.outer &&
    other.security === hop.security &&
    matchesOf(other).some(([, value]) => value === matchValue) &&
    nextHopOf(fleet, deployed, index) === nextHop &&
    // Two upstreams may have the same endpoint.
    upstreamBehind(deployed, index) === upstreamId
  );
}

/**
 * What the control plane wants to listen on each node: the port table, derived from the current definitions of enabled
 * chains. A route that does not stand so in the deployed definition has `deployed: false`. Implements `docs/contract/domain.md`,
 * Listener intent. Not what agents report.
 */
import type { ChainDefinition, ChainState, Hop } from '../chain/chain.js';
import { upstreamOf } from '../chain/status.js';
import { dialEndpoint } from '../compile/chain-rules.js';
import type { Fleet } from '../fleet/fleet.js';
import { hopTransport } from './claims.js';

export interface IntendedRoute {
  readonly source: 'l4_chain' | 'l4_upstream' | 'l3_network';
  readonly sourceLabel: string;
  readonly matchKind: 'reality' | 'sni' | 'local_key' | 'l3_context' | 'default';
  readonly matchValue: string;
  /** `""` while no address is known. */
  readonly nextHop: string;
  readonly resourceId: string;
  readonly deployed: boolean;
}

export interface IntendedListener {
  readonly nodeId: string;
  readonly transport: 'tcp' | 'udp';
  readonly listenAddr: string;
  readonly listenPort: number;
  readonly routes: readonly IntendedRoute[];
}

/** The listeners of one node, by transport, port and address; routes by source, match kind and value. */
export function intendedListeners(fleet: Fleet, nodeId: string): readonly IntendedListener[] {
  const listeners = new Map<string, IntendedListener & { routes: IntendedRoute[] }>();
  for (const owner of fleet.references.get(`node/${nodeId}`)) {
    const chain = fleet.chains.get(owner.slice(owner.indexOf('/') + 1));
    if (chain?.enabled !== true) continue;
    const index = chain.hops.findIndex((hop) => hop.node_id === nodeId);
    const hop = chain.hops[index];
    if (hop === undefined) continue;
    const transport = hopTransport(hop);
    const key = `${transport}/${hop.listen_port}/${hop.listen_addr}`;
    const listener = listeners.get(key) ?? {
      nodeId,
      transport,
      listenAddr: hop.listen_addr,
      listenPort: hop.listen_port,
      routes: [],
    };
    listener.routes.push(...routesOf(fleet, chain, index, hop));
    listeners.set(key, listener);
  }
  const text = (r: IntendedRoute): string => `${r.source}\u0000${r.matchKind}\u0000${r.matchValue}`;
  for (const { routes } of listeners.values()) routes.sort((a, b) => (text(a) < text(b) ? -1 : 1));
  return [...listeners.values()].sort(
    (a, b) => compare(a.transport, b.transport) || a.listenPort - b.listenPort || compare(a.listenAddr, b.listenAddr),
  );
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** One route per server name; a RAW hop without names is the default route. */
function routesOf(fleet: Fleet, chain: ChainState, index: number, hop: Hop): readonly IntendedRoute[] {
  const upstreamId = upstreamBehind(chain, index);
  const upstream = upstreamId === undefined ? undefined : fleet.upstreams.get(upstreamId);
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
    deployed: standsDeployed(fleet, chain, hop, matchValue, nextHop, upstreamId),
  }));
}

function matchesOf(hop: Hop): readonly (readonly ['sni' | 'default', string])[] {
  const names = hop.server_names ?? [];
  return names.length === 0 ? [['default', '']] : names.map((name) => ['sni', name] as const);
}

function nextHopOf(fleet: Fleet, definition: ChainDefinition, index: number): string {
  const next = definition.hops[index + 1];
  if (next !== undefined) return dialEndpoint(fleet, next);
  const { target } = definition;
  return 'endpoint' in target ? target.endpoint : (fleet.upstreams.get(target.upstream_id)?.endpoint ?? '');
}

/** The registered upstream that a hop leads into. */
function upstreamBehind(definition: ChainDefinition, index: number): string | undefined {
  return index === definition.hops.length - 1 ? upstreamOf(definition) : undefined;
}

function standsDeployed(
  fleet: Fleet,
  chain: ChainState,
  hop: Hop,
  matchValue: string,
  nextHop: string,
  upstreamId: string | undefined,
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
    // Two upstreams may have one endpoint.
    upstreamBehind(deployed, index) === upstreamId
  );
}

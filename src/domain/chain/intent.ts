/**
 * The listeners that the current definition of an enabled chain intends.
 * Implements `docs/contract/domain.md#l4-chain`, listener intent.
 */
import { x25519Material } from '../credential/material.js';
import type { IntendedListener, IntendedRoute } from '../listeners/intent.js';
import { dialEndpoint } from '../node/hops.js';
import type { FleetView } from '../resource/fleet-view.js';
import { upstreamAt } from '../upstream/upstream.js';
import type { ChainDefinition, ChainState, Hop, Payload } from './chain.js';
import { upstreamOf } from './chain.js';
import { effectiveNames } from './names.js';
import { listenerOf, transportOf } from './transports.js';

/** The listeners that a chain intends on a node; none while it is disabled. */
export function intendedByChain(fleet: FleetView, chain: ChainState, nodeId: string): readonly IntendedListener[] {
  const index = chain.hops.findIndex((hop) => hop.node_id === nodeId);
  const hop = chain.hops[index];
  if (!chain.enabled || hop === undefined) return [];
  return [{ nodeId, ...listenerOf(hop), routes: routesOf(fleet, chain, index, hop) }];
}

/** One route per server name; a Noise hop's route is its public key, and a RAW hop without names is the default route. */
function routesOf(fleet: FleetView, chain: ChainState, index: number, hop: Hop): readonly IntendedRoute[] {
  const upstreamId = upstreamBehind(chain, index);
  const upstream = upstreamAt(fleet, upstreamId);
  const source = upstream === undefined ? 'l4_chain' : 'l4_upstream';
  const sourceLabel = upstream?.name ?? chain.name;
  const nextHop = nextHopOf(fleet, chain, index);
  return matchesOf(fleet, chain.payload, hop).map(([matchKind, matchValue]) => ({
    source,
    sourceLabel,
    matchKind,
    matchValue,
    nextHop,
    resourceId: chain.id,
    deployed: isDeployed(fleet, chain, { hop, matchKind, matchValue, nextHop, upstreamId }),
  }));
}

type Match = readonly [kind: IntendedRoute['matchKind'], value: string];

function matchesOf(fleet: FleetView, payload: Payload, hop: Hop): readonly Match[] {
  const kind = transportOf(payload, hop)?.matchKind ?? 'default';
  if (kind === 'local_key') return [[kind, x25519Material(fleet, hop.credential_id)?.public_key ?? '']];
  const names = effectiveNames(fleet, hop);
  return names.length === 0 ? [['default', '']] : names.map((name) => [kind, name] as const);
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
  readonly matchKind: IntendedRoute['matchKind'];
  readonly matchValue: string;
  readonly nextHop: string;
  readonly upstreamId: string | undefined;
}

/** Whether the deployed definition has the same route. */
function isDeployed(
  fleet: FleetView,
  chain: ChainState,
  { hop, matchKind, matchValue, nextHop, upstreamId }: CurrentRoute,
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
    matchesOf(fleet, deployed.payload, other).some(([kind, value]) => kind === matchKind && value === matchValue) &&
    nextHopOf(fleet, deployed, index) === nextHop &&
    // Two upstreams may have the same endpoint.
    upstreamBehind(deployed, index) === upstreamId
  );
}

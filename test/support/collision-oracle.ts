/**
 * Listener collisions by `docs/contract/domain.md#listeners-and-collisions` alone: every listener is compared with every
 * other one, without the service's indexes, address overlap and effective multiplex. Quotations are from that section.
 */

import type { Fleet } from '../../src/domain/fleet/fleet.js';

interface OracleHop {
  readonly node_id: string;
  readonly listen_addr: string;
  readonly listen_port: number;
  readonly outer: string;
  readonly security: string;
  readonly server_names?: readonly string[];
  readonly credential_id?: string;
}

interface OracleCredential {
  readonly id: string;
  readonly key_type: string;
  readonly public_key: string | null;
  readonly server_names: readonly string[];
  readonly certificate: { readonly subject_alt_names: readonly string[] } | null;
}

interface OracleChain {
  readonly id: string;
  readonly enabled: boolean;
  readonly hops: readonly OracleHop[];
  readonly deployed: { readonly hops: readonly OracleHop[] } | null;
}

interface OracleRoute {
  readonly id: string;
  readonly enabled: boolean;
  readonly host: string;
  readonly path_prefix: string;
  readonly hops: readonly Pick<OracleHop, 'node_id' | 'listen_addr' | 'listen_port'>[];
}

interface OracleTunnel {
  readonly listener_node_id: string;
  readonly listen_addr: string;
  readonly listen_port: number;
  readonly connector_node_id: string;
  /** Absent: one that no other tunnel has. */
  readonly context_id?: number;
}

interface OracleNetwork {
  readonly id: string;
  readonly enabled: boolean;
  readonly credential_id: string;
  readonly server_name: string;
  readonly tunnels: readonly OracleTunnel[];
}

interface OracleSettings {
  readonly multiplex: boolean;
  readonly multiplex_port: number | null;
  readonly nodes: { readonly [id: string]: { readonly multiplex: boolean; readonly multiplex_port: number | null } };
}

/** Everything that collisions depend on. */
export interface World {
  readonly nodeIds: readonly string[];
  readonly chains: readonly OracleChain[];
  readonly routes: readonly OracleRoute[];
  readonly credentials: readonly OracleCredential[];
  readonly networks: readonly OracleNetwork[];
  readonly settings: OracleSettings;
}

export const worldOf = ({ tables, singletons }: Fleet): World => ({
  nodeIds: [...tables.node.ids()],
  chains: [...tables.l4_chain.values()],
  routes: [...tables.route.values()],
  credentials: [...tables.credential.values()],
  networks: [...tables.l3_network.values()],
  settings: singletons.connectivity.value,
});

interface Listener {
  readonly owner: string;
  readonly node: string;
  readonly transport: string;
  readonly addr: string;
  readonly port: number;
  readonly kind: 'names' | 'local key' | 'raw' | 'http' | 'tunnel' | 'alone';
  /** Server names, the public key, the host and path prefix of a route, or the context id of a tunnel. */
  readonly values: readonly string[];
  readonly tunnel?: { readonly credential: string; readonly name: string };
}

/** Pairs of owners that collide, as `a + b` with a < b. */
export function collidingPairs(world: World): ReadonlySet<string> {
  const all = [
    ...world.chains.flatMap((chain) => listenersOf(chain, world.credentials)),
    ...world.routes.flatMap(listenersOfRoute),
    ...world.networks.flatMap(listenersOfNetwork),
    ...multiplexPorts(world),
  ];
  const pairs = new Set<string>();
  for (const [index, a] of all.entries()) {
    for (const b of all.slice(index + 1)) if (collide(a, b)) pairs.add([a.owner, b.owner].sort().join(' + '));
  }
  return pairs;
}

/** "A chain claims its current *and* its deployed listeners while it is enabled." */
function listenersOf(chain: OracleChain, credentials: readonly OracleCredential[]): readonly Listener[] {
  if (!chain.enabled) return [];
  return [...chain.hops, ...(chain.deployed?.hops ?? [])].map((hop) => ({
    owner: `l4_chain/${chain.id}`,
    node: hop.node_id,
    // "QUIC is udp, FAKE_TCP is tcp."
    transport: { tcp: 'tcp', fake_tcp: 'tcp', udp: 'udp', quic: 'udp' }[hop.outer] ?? '',
    addr: hop.listen_addr,
    port: hop.listen_port,
    ...apart(hop, credentials),
  }));
}

/** What tells a hop apart from others on its listener. */
function apart(hop: OracleHop, credentials: readonly OracleCredential[]): Pick<Listener, 'kind' | 'values'> {
  // "FAKE_TCP and a node's multiplex port (tcp) share with nothing"
  if (hop.outer === 'fake_tcp') return { kind: 'alone', values: [] };
  const credential = credentials.find(({ id }) => id === hop.credential_id);
  // "Noise routes with distinct local keys"
  if (hop.security === 'noise') return { kind: 'local key', values: [credential?.public_key ?? ''] };
  // "for reality a subset of the credential's (default all); for tls default the certificate's DNS SANs"
  const defaults = credential?.certificate?.subject_alt_names ?? credential?.server_names ?? [];
  const names = (hop.server_names ?? []).length > 0 ? (hop.server_names ?? []) : defaults;
  return names.length === 0 ? { kind: 'raw', values: [] } : { kind: 'names', values: names };
}

/** "A disabled route is in no snapshot and claims no listener." */
function listenersOfRoute(route: OracleRoute): readonly Listener[] {
  if (!route.enabled) return [];
  return route.hops.map((hop) => ({
    owner: `route/${route.id}`,
    node: hop.node_id,
    transport: 'tcp',
    addr: hop.listen_addr,
    port: hop.listen_port,
    kind: 'http',
    values: [JSON.stringify([route.host, route.path_prefix])],
  }));
}

/** "A disabled network is in no snapshot and claims nothing." */
function listenersOfNetwork({ id, enabled, credential_id, server_name, tunnels }: OracleNetwork): readonly Listener[] {
  if (!enabled) return [];
  return tunnels.map((tunnel) => ({
    owner: `l3_network/${id}`,
    node: tunnel.listener_node_id,
    transport: 'udp',
    addr: tunnel.listen_addr,
    port: tunnel.listen_port,
    kind: 'tunnel',
    values: tunnel.context_id === undefined ? [] : [String(tunnel.context_id)],
    tunnel: { credential: credential_id, name: server_name },
  }));
}

/**
 * The tunnels of an edit, each with its context id: "kept on PUT for the same listener key and connector", unless another
 * tunnel of the edit is given that one.
 */
export function withKeptContexts(
  before: readonly OracleTunnel[],
  edited: readonly OracleTunnel[],
): readonly OracleTunnel[] {
  const ends = ({ context_id: _, ...rest }: OracleTunnel): string => JSON.stringify(Object.entries(rest).sort());
  const used = new Set(edited.map(({ context_id }) => context_id));
  return edited.map((tunnel) => {
    if (tunnel.context_id !== undefined) return tunnel;
    const same = before.find((one) => ends(one) === ends(tunnel) && !used.has(one.context_id));
    if (same?.context_id === undefined) return tunnel;
    used.add(same.context_id);
    return { ...tunnel, context_id: same.context_id };
  });
}

/** "A multiplex port is held on `::`"; it "shares with nothing". */
function multiplexPorts({ nodeIds, settings }: World): readonly Listener[] {
  return nodeIds.flatMap((node) => {
    const override = settings.nodes[node];
    const on = override === undefined ? settings.multiplex : override.multiplex;
    const port = override?.multiplex_port ?? settings.multiplex_port;
    if (!on || port === null) return [];
    return [{ owner: `connectivity/${node}`, node, transport: 'tcp', addr: '::', port, kind: 'alone', values: [] }];
  });
}

function collide(a: Listener, b: Listener): boolean {
  // "compared with others' only"
  if (a.owner === b.owner) return false;
  if (a.node !== b.node || a.transport !== b.transport || a.port !== b.port) return false;
  // "overlapping keys with the same port and transport collide unless they are the same key"
  if (a.addr !== b.addr) return covers(a.addr, b.addr) || covers(b.addr, a.addr);
  if (a.kind === 'alone' || b.kind === 'alone') return true;
  // "at most one RAW fallback; legacy routes with distinct (host, path prefix) together count as the RAW fallback"
  const fallbacks = [a.kind, b.kind].filter((kind) => kind === 'raw' || kind === 'http');
  if (fallbacks.length === 2 && fallbacks.includes('raw')) return true;
  // "L3 tunnels: any number that share one reality credential, with distinct context ids"
  if (a.tunnel !== undefined && b.tunnel !== undefined && a.tunnel.credential !== b.tunnel.credential) return true;
  // "and a server name that no QUIC route there has"
  if (a.kind === 'names' && b.tunnel !== undefined && a.values.includes(b.tunnel.name)) return true;
  if (b.kind === 'names' && a.tunnel !== undefined && b.values.includes(a.tunnel.name)) return true;
  // Distinct values within a kind; different kinds live together.
  return a.kind === b.kind && a.values.some((value) => b.values.includes(value));
}

/** "`0.0.0.0` overlaps every IPv4 address and `::` every address". */
function covers(wide: string, other: string): boolean {
  return wide === '::' || (wide === '0.0.0.0' && !other.includes(':'));
}

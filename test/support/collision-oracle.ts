/**
 * Listener collisions by `docs/contract/domain.md#listeners-and-collisions` alone: every listener is compared with every
 * other one, without the service's indexes, address overlap and effective multiplex. Quotations are from that section.
 */

interface OracleHop {
  readonly node_id: string;
  readonly listen_addr: string;
  readonly listen_port: number;
  readonly outer: string;
  readonly server_names?: readonly string[];
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
  readonly settings: OracleSettings;
}

interface Listener {
  readonly owner: string;
  readonly node: string;
  readonly transport: string;
  readonly addr: string;
  readonly port: number;
  readonly alone: boolean;
  /** null for the RAW fallback. */
  readonly names: readonly string[] | null;
  /** Of a legacy route: its host and path prefix. */
  readonly http?: string;
}

/** Pairs of owners that collide, as `a + b` with a < b. */
export function collidingPairs(world: World): ReadonlySet<string> {
  const all = [
    ...world.chains.flatMap(listenersOf),
    ...world.routes.flatMap(listenersOfRoute),
    ...multiplexPorts(world),
  ];
  const pairs = new Set<string>();
  for (const [index, a] of all.entries()) {
    for (const b of all.slice(index + 1)) if (collide(a, b)) pairs.add([a.owner, b.owner].sort().join(' + '));
  }
  return pairs;
}

/** "A chain claims its current *and* its deployed listeners while it is enabled." */
function listenersOf(chain: OracleChain): readonly Listener[] {
  if (!chain.enabled) return [];
  return [...chain.hops, ...(chain.deployed?.hops ?? [])].map((hop) => ({
    owner: `l4_chain/${chain.id}`,
    node: hop.node_id,
    // "QUIC is udp, FAKE_TCP is tcp."
    transport: { tcp: 'tcp', fake_tcp: 'tcp', udp: 'udp', quic: 'udp' }[hop.outer] ?? '',
    addr: hop.listen_addr,
    port: hop.listen_port,
    alone: hop.outer === 'fake_tcp',
    names: hop.outer === 'tcp' && (hop.server_names ?? []).length > 0 ? (hop.server_names ?? []) : null,
  }));
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
    alone: false,
    names: null,
    http: JSON.stringify([route.host, route.path_prefix]),
  }));
}

/** "A multiplex port is held on `::`"; it "shares with nothing". */
function multiplexPorts({ nodeIds, settings }: World): readonly Listener[] {
  return nodeIds.flatMap((node) => {
    const override = settings.nodes[node];
    const on = override === undefined ? settings.multiplex : override.multiplex;
    const port = override?.multiplex_port ?? settings.multiplex_port;
    if (!on || port === null) return [];
    return [{ owner: `connectivity/${node}`, node, transport: 'tcp', addr: '::', port, alone: true, names: null }];
  });
}

function collide(a: Listener, b: Listener): boolean {
  // "compared with others' only"
  if (a.owner === b.owner) return false;
  if (a.node !== b.node || a.transport !== b.transport || a.port !== b.port) return false;
  // "overlapping keys with the same port and transport collide unless they are the same key"
  if (a.addr !== b.addr) return covers(a.addr, b.addr) || covers(b.addr, a.addr);
  if (a.alone || b.alone) return true;
  // "legacy routes with distinct (host, path prefix) together count as the RAW fallback"
  if (a.http !== undefined && b.http !== undefined) return a.http === b.http;
  // "at most one RAW fallback"; "server names are distinct"
  if (a.names === null || b.names === null) return a.names === b.names;
  const others = new Set(b.names);
  return a.names.some((name) => others.has(name));
}

/** "`0.0.0.0` overlaps every IPv4 address and `::` every address". */
function covers(wide: string, other: string): boolean {
  return wide === '::' || (wide === '0.0.0.0' && !other.includes(':'));
}

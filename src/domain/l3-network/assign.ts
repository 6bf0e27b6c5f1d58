/**
 * Assigns what operators leave out of an L3 network (its number, interface names, context ids), and finds overlaps of its
 * members' addresses and routes. Events hold what was assigned, so every instance has the same. Implements
 * `docs/contract/domain.md#l3-network`.
 */
import { limits } from '../../kernel/limits.js';
import type { FleetView } from '../resource/fleet-view.js';
import { claimOfTunnel } from './claims.js';
import type { Member, NetworkState, RequestedMember, RequestedTunnel, Tunnel } from './l3-network.js';
import { formatCidr, hostOf, isDefaultRoute, overlappingPair, parseCidr, type Cidr } from '../../kernel/cidr.js';
import { groupBy } from '../../kernel/maps.js';

/**
 * The number of the next network: one more than the revision of its event. No number is used twice, even after a delete, so a
 * revert can restore it. @returns undefined when no number is left
 */
export function nextNetworkId(fleet: FleetView): number | undefined {
  const revision = fleet.revision.value + 1;
  return revision < limits.fleet.l3.networkIdMax ? revision + 1 : undefined;
}

/** Members with a name for each interface. */
export function namedMembers(networkId: number, members: readonly RequestedMember[]): readonly Member[] {
  return members.map(({ node_id, interface_name, ...rest }) => ({
    node_id,
    interface_name: interface_name ?? `svc${networkId}`,
    ...rest,
  }));
}

const sameTunnel = ({ listener_node_id, listen_addr, listen_port, connector_node_id }: RequestedTunnel): string =>
  `${listener_node_id}/${listen_addr}/${listen_port}/${connector_node_id}`;

/**
 * Gives each tunnel a context id: the requested one, else that of a former tunnel with the same listener and connector,
 * else the lowest that no network uses on the listener.
 * @param network the owner of the tunnels @param before its former tunnels
 */
export function identifiedTunnels(
  fleet: FleetView,
  network: Pick<NetworkState, 'id' | 'credential_id' | 'server_name'>,
  requested: readonly RequestedTunnel[],
  before: readonly Tunnel[] = [],
): readonly Tunnel[] {
  const used = new Set(requested.flatMap(({ context_id }) => context_id ?? []));
  const kept = keptIds(requested, before, used);
  // The next id to try on each listener; all lower ones are used.
  const searched = new Map<string, number>();
  return requested.map((tunnel, index) => {
    const context_id = tunnel.context_id ?? kept.get(index) ?? lowestFree(tunnel);
    used.add(context_id);
    return { ...tunnel, context_id };
  });

  function lowestFree(tunnel: RequestedTunnel): number {
    const { listener_node_id, listen_addr, listen_port } = tunnel;
    const key = `${listener_node_id}/${listen_addr}/${listen_port}`;
    let id = searched.get(key) ?? 1;
    while (used.has(id) || takenByAnother(fleet, network, tunnel, id)) id += 1;
    searched.set(key, id);
    return id;
  }
}

/** The ids that tunnels keep, by index. Adds them to `used`. */
function keptIds(
  requested: readonly RequestedTunnel[],
  before: readonly Tunnel[],
  used: Set<number>,
): ReadonlyMap<number, number> {
  const earlier = groupBy(before, sameTunnel);
  const kept = new Map<number, number>();
  for (const [index, tunnel] of requested.entries()) {
    if (tunnel.context_id !== undefined) continue;
    const id = earlier.get(sameTunnel(tunnel))?.find((one) => !used.has(one.context_id))?.context_id;
    if (id === undefined) continue;
    kept.set(index, id);
    used.add(id);
  }
  return kept;
}

/** Whether another enabled network uses the context id on the same listener. */
function takenByAnother(
  fleet: FleetView,
  network: Pick<NetworkState, 'id' | 'credential_id' | 'server_name'>,
  tunnel: RequestedTunnel,
  id: number,
): boolean {
  const claim = claimOfTunnel(network, tunnel, null);
  const owners = fleet.claims.ownersOfValue(claim, 'l3', String(id));
  return [...owners].some((owner) => owner !== claim.owner);
}

interface Entry {
  readonly cidr: Cidr;
  /** The index of the member. */
  readonly group: number;
  readonly kind: 'addresses' | 'routes';
  readonly index: number;
}

function entriesOf(members: readonly Pick<Member, 'addresses' | 'routes'>[]): readonly Entry[] {
  const of = (kind: Entry['kind'], group: number, texts: readonly string[]): readonly Entry[] =>
    texts.flatMap((text, index) => {
      const cidr = parseCidr(text);
      if (cidr === undefined) return [];
      return [{ cidr: kind === 'addresses' ? hostOf(cidr) : cidr, group, kind, index }];
    });
  return members.flatMap(({ addresses, routes }, group) => [
    ...of('addresses', group, addresses),
    ...of('routes', group, routes),
  ]);
}

const isDefault = ({ kind, cidr }: Entry): boolean => kind === 'routes' && isDefaultRoute(cidr);

/**
 * The first overlap of two members, as a sentence that names both.
 * @param nodeName finds the name of a member's node
 */
export function overlapBetween(
  members: readonly Pick<Member, 'node_id' | 'addresses' | 'routes'>[],
  nodeName: (nodeId: string) => string,
): string | undefined {
  const entries = entriesOf(members);
  const pair =
    overlappingPair(entries.filter(isDefault)) ?? overlappingPair(entries.filter((entry) => !isDefault(entry)));
  if (pair === undefined) return undefined;
  const [other, one] = [...pair].sort((a, b) => a.group - b.group) as [Entry, Entry];
  const place = ({ group, kind, index }: Entry): string => `members[${group}].${kind}[${index}]`;
  const node = members[other.group]?.node_id ?? '';
  return (
    `${place(one)}: ${formatCidr(one.cidr)} overlaps ${formatCidr(other.cidr)} of ${place(other)}, ` +
    `node "${nodeName(node)}"; expected addresses and routes that no other member has`
  );
}

/**
 * The rules of an L3 network by itself: distinct members, tunnels between members, context ids, listeners, interface names,
 * addresses. REST checks bodies, `declaration.ts` whole definitions. `assign.ts` finds overlaps of members, which are a 409.
 * Implements `docs/contract/domain.md#l3-network`.
 */
import { hostOf, overlap, parseCidr, type Cidr } from '../../kernel/cidr.js';
import { limits } from '../../kernel/limits.js';
import { overlaps } from '../listeners/claims.js';
import type { Problem } from '../resource/rules.js';
import type { RequestedMember, RequestedTunnel } from './l3-network.js';

/** A definition, or the fields of one that an edit sends. Optional fields may be present and undefined. */
export interface PartialNetwork {
  readonly members?: readonly MemberToCheck[] | undefined;
  readonly tunnels?: readonly TunnelToCheck[] | undefined;
}

type MemberToCheck = Pick<RequestedMember, 'node_id' | 'addresses'> & {
  readonly interface_name?: string | undefined;
};

type TunnelToCheck = Omit<RequestedTunnel, 'context_id'> & { readonly context_id?: number | undefined };

export function* definitionProblems({ members, tunnels = [] }: PartialNetwork): Generator<Problem> {
  yield* memberProblems(members ?? []);
  yield* tunnelProblems(tunnels);
  if (members !== undefined) yield* endProblems(tunnels, new Set(members.map(({ node_id }) => node_id)));
}

function* memberProblems(members: readonly MemberToCheck[]): Generator<Problem> {
  const indexes = new Map<string, number>();
  for (const [index, { node_id, interface_name, addresses }] of members.entries()) {
    const earlier = indexes.get(node_id);
    if (earlier !== undefined) {
      const message = `expected each node at most once in a network; this one is already members[${earlier}]`;
      yield { path: ['members', index, 'node_id'], message };
    }
    indexes.set(node_id, index);
    if (interface_name !== undefined && !isInterfaceName(interface_name)) {
      yield { path: ['members', index, 'interface_name'], message: `expected ${interfaceName}` };
    }
    for (const [at, address] of addresses.entries()) {
      if (isHostAddress(address)) continue;
      const message = 'expected the address of a host: not unspecified, loopback, multicast or broadcast';
      yield { path: ['members', index, 'addresses', at], message };
    }
  }
}

const interfaceName =
  `a name of an interface: 1 to ${limits.fleet.l3.interfaceNameChars} visible ASCII characters without / : %, ` +
  'and not ".", "..", "lo", "all" or "default"';

/** Names that Linux uses itself, or that stand for several interfaces in its settings. */
const reservedNames: ReadonlySet<string> = new Set(['.', '..', 'lo', 'all', 'default']);

/** Linux allows 15 bytes without slash, colon and white space; a percent sign would make a pattern. */
function isInterfaceName(name: string): boolean {
  const characters = /^[\x21-\x7e]+$/.test(name) && !/[/:%]/.test(name);
  return characters && name.length <= limits.fleet.l3.interfaceNameChars && !reservedNames.has(name);
}

const notOfHosts: readonly Cidr[] = [
  '0.0.0.0/8',
  '127.0.0.0/8',
  '224.0.0.0/4',
  '255.255.255.255/32',
  '::/127',
  'ff00::/8',
].flatMap((text) => parseCidr(text) ?? []);

function isHostAddress(address: string): boolean {
  const cidr = parseCidr(address);
  return cidr !== undefined && !notOfHosts.some((range) => overlap(range, hostOf(cidr)));
}

function* tunnelProblems(tunnels: readonly TunnelToCheck[]): Generator<Problem> {
  const contexts = new Map<number, number>();
  const listeners = new Map<string, Map<string, number>>();
  for (const [index, tunnel] of tunnels.entries()) {
    const { listener_node_id, connector_node_id, listen_addr, listen_port, context_id } = tunnel;
    if (listener_node_id === connector_node_id) {
      yield { path: ['tunnels', index, 'connector_node_id'], message: 'expected another node than listener_node_id' };
    }
    const sameContext = context_id === undefined ? undefined : contexts.get(context_id);
    if (sameContext !== undefined) {
      const message = `expected a context id of its own in the network; tunnels[${sameContext}] has this one`;
      yield { path: ['tunnels', index, 'context_id'], message };
    }
    if (context_id !== undefined) contexts.set(context_id, index);
    const port = `${listener_node_id}/${listen_port}`;
    const addresses = listeners.get(port) ?? new Map<string, number>();
    for (const [address, earlier] of addresses) {
      if (address === listen_addr || !overlaps(address, listen_addr)) continue;
      const message = `expected the address of tunnels[${earlier}] or one that does not overlap it, on the same port`;
      yield { path: ['tunnels', index, 'listen_addr'], message };
    }
    listeners.set(port, addresses.set(listen_addr, index));
  }
}

function* endProblems(tunnels: readonly TunnelToCheck[], members: ReadonlySet<string>): Generator<Problem> {
  for (const [index, tunnel] of tunnels.entries()) {
    for (const end of ['listener_node_id', 'connector_node_id'] as const) {
      if (members.has(tunnel[end])) continue;
      const message = `expected the node of a member of the network, ${tunnel[end]} is not one`;
      yield { path: ['tunnels', index, end], message };
    }
  }
}

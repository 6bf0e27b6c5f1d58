/**
 * Claims on the listeners of nodes, and their index, which finds a collision in constant time however many routes share a
 * port. Each declaration makes the claims of its resource. Implements `docs/contract/domain.md#listeners-and-collisions`.
 */
import { createIndex, type Index, type Values } from '../aggregate/containers.js';
import type { Owner } from '../references/references.js';
import type { ListenerKey } from './intent.js';

/**
 * The purpose of a claim. `excluding` in `collisions.ts` says which families cannot share a listener:
 * - `raw`: the fallback without a name
 * - `http`: legacy routes, matched by host and path prefix; together they are the fallback
 * - `names`: REALITY, TLS and SNI pre-read on tcp, QUIC REALITY on udp, matched by server name
 * - `local_key`: Noise, matched by the listener's public key
 * - `l3`: tunnels, matched by context id
 * - `exclusive`: shares with nothing
 */
export const claimFamilies = ['raw', 'http', 'names', 'local_key', 'l3', 'exclusive'] as const;
export type ClaimFamily = (typeof claimFamilies)[number];

export interface Claim {
  readonly owner: Owner;
  readonly nodeId: string;
  readonly transport: 'tcp' | 'udp';
  readonly addr: string;
  readonly port: number;
  readonly family: ClaimFamily;
  /** The values that the family matches by; no two owners on one listener may have the same one. */
  readonly values: readonly string[];
  /** Only of `l3`: the credential that all tunnels on the listener share, and the name that no other route there may have. */
  readonly tunnel?: { readonly credentialId: string; readonly serverName: string };
}

/** The listeners of a node among claims. */
export function listenersOf(claims: readonly Claim[], nodeId: string): readonly ListenerKey[] {
  return claims
    .filter((claim) => claim.nodeId === nodeId)
    .map(({ transport, addr, port }) => ({ transport, listenAddr: addr, listenPort: port }));
}

type PortOfNode = Pick<Claim, 'nodeId' | 'transport' | 'port'>;

export interface ClaimEntries {
  readonly addresses: Index;
  readonly byFamily: Index;
  readonly byValue: Index;
  readonly tunnels: Index;
}

export function createClaimEntries(): ClaimEntries {
  return { addresses: createIndex(), byFamily: createIndex(), byValue: createIndex(), tunnels: createIndex() };
}

export interface ClaimIndex {
  add(claim: Claim): void;
  remove(claim: Claim): void;
  /** The claimed addresses of a node, transport and port. */
  addresses(nodeId: string, transport: string, port: number): Values;
  owners(port: PortOfNode, addr: string, family: ClaimFamily): Values;
  ownersOfValue(claim: Claim, family: ClaimFamily, value: string): Values;
  /** The owners of tunnels on the claim's listener that use a server name. */
  tunnelsNamed(claim: Claim, serverName: string): Values;
  /** The credentials of the tunnels on the claim's listener. */
  tunnelCredentials(claim: Claim): Values;
  tunnelsWithCredential(claim: Claim, credentialId: string): Values;
}

const portKey = (port: PortOfNode): string => `${port.nodeId}/${port.transport}/${port.port}`;

/** Tells two claims of one resource apart. */
export function claimKey(claim: Claim): string {
  const tunnel = claim.tunnel === undefined ? '' : `/${claim.tunnel.credentialId}/${claim.tunnel.serverName}`;
  return `${portKey(claim)}/${claim.addr}/${claim.family}/${claim.values.join(' ')}${tunnel}`;
}

export function claimIndexOn({ addresses, byFamily, byValue, tunnels }: ClaimEntries): ClaimIndex {
  const familyKey = (port: PortOfNode, addr: string, family: ClaimFamily): string =>
    `${portKey(port)}/${addr}/${family}`;
  const valueKey = (claim: Claim, family: ClaimFamily, value: string): string =>
    `${familyKey(claim, claim.addr, family)}/${value}`;
  const listenerKey = (claim: Claim): string => `${portKey(claim)}/${claim.addr}`;
  const namedKey = (claim: Claim, serverName: string): string => `${listenerKey(claim)}/name/${serverName}`;
  const credentialKey = (claim: Claim, id: string): string => `${listenerKey(claim)}/credential/${id}`;
  const credentialsKey = (claim: Claim): string => `${listenerKey(claim)}/credentials`;
  return {
    add(claim) {
      addresses.add(portKey(claim), claim.addr);
      byFamily.add(familyKey(claim, claim.addr, claim.family), claim.owner);
      for (const value of claim.values) byValue.add(valueKey(claim, claim.family, value), claim.owner);
      if (claim.tunnel === undefined) return;
      const { credentialId, serverName } = claim.tunnel;
      tunnels.add(namedKey(claim, serverName), claim.owner);
      tunnels.add(credentialKey(claim, credentialId), claim.owner);
      tunnels.add(credentialsKey(claim), credentialId);
    },
    remove(claim) {
      byFamily.remove(familyKey(claim, claim.addr, claim.family), claim.owner);
      for (const value of claim.values) byValue.remove(valueKey(claim, claim.family, value), claim.owner);
      const used = claimFamilies.some((family) => byFamily.get(familyKey(claim, claim.addr, family)).size > 0);
      if (!used) addresses.remove(portKey(claim), claim.addr);
      if (claim.tunnel === undefined) return;
      const { credentialId, serverName } = claim.tunnel;
      tunnels.remove(namedKey(claim, serverName), claim.owner);
      tunnels.remove(credentialKey(claim, credentialId), claim.owner);
      if (tunnels.get(credentialKey(claim, credentialId)).size === 0) {
        tunnels.remove(credentialsKey(claim), credentialId);
      }
    },
    addresses: (nodeId, transport, port) => addresses.get(`${nodeId}/${transport}/${port}`),
    owners: (port, addr, family) => byFamily.get(familyKey(port, addr, family)),
    ownersOfValue: (claim, family, value) => byValue.get(valueKey(claim, family, value)),
    tunnelsNamed: (claim, serverName) => tunnels.get(namedKey(claim, serverName)),
    tunnelCredentials: (claim) => tunnels.get(credentialsKey(claim)),
    tunnelsWithCredential: (claim, credentialId) => tunnels.get(credentialKey(claim, credentialId)),
  };
}

function isIpv6(address: string): boolean {
  return address.includes(':');
}

/** `0.0.0.0` overlaps every IPv4 address and `::` every address; equal addresses overlap. */
export function overlaps(a: string, b: string): boolean {
  if (a === b || a === '::' || b === '::') return true;
  if (a === '0.0.0.0') return !isIpv6(b);
  if (b === '0.0.0.0') return !isIpv6(a);
  return false;
}

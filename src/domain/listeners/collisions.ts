/**
 * Whether a claim collides with the claims of other resources or with a multiplex port.
 * Implements `docs/contract/domain.md#listeners-and-collisions`.
 */
import { describeOwner, multiplexOwner, type NameView, type Owner } from '../references/references.js';
import { overlaps, claimFamilies, type Claim, type ClaimFamily, type ClaimIndex } from './claims.js';
import type { Values } from '../aggregate/containers.js';

export interface ListenerView extends NameView {
  readonly claims: ClaimIndex;
  /** The TCP port that multiplexing holds on `::` of a node; null for none. */
  multiplexPortOf(nodeId: string): number | null;
}

interface Collision {
  readonly claim: Claim;
  readonly other: Owner;
  readonly otherAddr: string;
}

function firstOtherThan(owner: Owner, owners: Values): Owner | undefined {
  for (const other of owners) if (other !== owner) return other;
  return undefined;
}

/** The families that cannot share a listener, whatever they match by. */
const excluding: { readonly [F in ClaimFamily]: readonly ClaimFamily[] } = {
  raw: ['raw', 'http', 'exclusive'],
  http: ['raw', 'exclusive'],
  names: ['exclusive'],
  local_key: ['exclusive'],
  l3: ['exclusive'],
  exclusive: claimFamilies,
};

/** The first other owner with which the claim cannot share its listener. */
function onSameKey({ claims }: ListenerView, claim: Claim): Owner | undefined {
  for (const family of excluding[claim.family]) {
    const other = firstOtherThan(claim.owner, claims.owners(claim, claim.addr, family));
    if (other !== undefined) return other;
  }
  for (const value of claim.values) {
    const other =
      firstOtherThan(claim.owner, claims.ownersOfValue(claim, claim.family, value)) ??
      (claim.family === 'names' ? firstOtherThan(claim.owner, claims.tunnelsNamed(claim, value)) : undefined);
    if (other !== undefined) return other;
  }
  return claim.tunnel === undefined ? undefined : besideTunnel(claims, claim, claim.tunnel);
}

/** Tunnels on one listener share one credential, and no QUIC route there has their server name. */
function besideTunnel(
  claims: ClaimIndex,
  claim: Claim,
  { credentialId, serverName }: NonNullable<Claim['tunnel']>,
): Owner | undefined {
  const named = firstOtherThan(claim.owner, claims.ownersOfValue(claim, 'names', serverName));
  if (named !== undefined) return named;
  for (const credential of claims.tunnelCredentials(claim)) {
    if (credential === credentialId) continue;
    const other = firstOtherThan(claim.owner, claims.tunnelsWithCredential(claim, credential));
    if (other !== undefined) return other;
  }
  return undefined;
}

/** The first collision of a claim with another owner. */
export function collisionOf(view: ListenerView, claim: Claim): Collision | undefined {
  if (claim.transport === 'tcp' && view.multiplexPortOf(claim.nodeId) === claim.port) {
    return { claim, other: multiplexOwner(claim.nodeId), otherAddr: '::' };
  }
  for (const addr of view.claims.addresses(claim.nodeId, claim.transport, claim.port)) {
    if (addr === claim.addr) {
      const other = onSameKey(view, claim);
      if (other !== undefined) return { claim, other, otherAddr: addr };
    } else if (overlaps(addr, claim.addr)) {
      for (const family of claimFamilies) {
        const other = firstOtherThan(claim.owner, view.claims.owners(claim, addr, family));
        if (other !== undefined) return { claim, other, otherAddr: addr };
      }
    }
  }
  return undefined;
}

/** The first TCP listener on a port of a node, with which a multiplex port would collide. */
export function tcpListenerOn(
  { claims }: ListenerView,
  nodeId: string,
  port: number,
): { readonly owner: Owner; readonly addr: string } | undefined {
  for (const addr of claims.addresses(nodeId, 'tcp', port)) {
    for (const family of claimFamilies) {
      for (const owner of claims.owners({ nodeId, transport: 'tcp', port }, addr, family)) return { owner, addr };
    }
  }
  return undefined;
}

/** A sentence that names the other resource. @param path the JSON path of the field that claims the listener */
export function collisionSentence(view: ListenerView, { claim, other, otherAddr }: Collision, path: string): string {
  const node = view.nameOf('node', claim.nodeId) ?? claim.nodeId;
  return (
    `${path}: the ${claim.transport} listener ${claim.addr} port ${claim.port} on node "${node}" collides with ` +
    `${describeOwner(view, other)} on ${otherAddr}`
  );
}

/**
 * Whether a claim may live beside the claims of others (`docs/contract/domain.md`, "On one key may live together").
 */
import type { Fleet } from '../fleet/fleet.js';
import { effectiveMultiplex } from '../settings/settings.js';
import { overlaps } from './address.js';
import type { Claim } from './claims.js';
import { claimFamilies } from './claims.js';

export interface Collision {
  readonly claim: Claim;
  /** Owner of the other claim: `<type>/<id>`; `connectivity/<node id>` for a multiplex port. */
  readonly other: string;
  readonly otherAddr: string;
}

function another(owners: ReadonlySet<string>, than: string): string | undefined {
  for (const owner of owners) if (owner !== than) return owner;
  return undefined;
}

function onSameKey(fleet: Fleet, claim: Claim): string | undefined {
  for (const family of claimFamilies) {
    const owners = fleet.claims.owners(claim, claim.addr, family);
    const alone =
      claim.family === 'exclusive' || family === 'exclusive' || (claim.family === 'raw' && family === 'raw');
    const other = alone ? another(owners, claim.owner) : undefined;
    if (other !== undefined) return other;
  }
  for (const value of claim.values) {
    const other = another(fleet.claims.ownersOfValue(claim, value), claim.owner);
    if (other !== undefined) return other;
  }
  return undefined;
}

/** The first resource that a claim collides with, its owner's own claims aside. */
export function collisionOf(fleet: Fleet, claim: Claim): Collision | undefined {
  if (claim.transport === 'tcp') {
    const held = effectiveMultiplex(fleet.settings.value, claim.nodeId);
    if (held.multiplex_port === claim.port) return { claim, other: `connectivity/${claim.nodeId}`, otherAddr: '::' };
  }
  for (const addr of fleet.claims.addresses(claim.nodeId, claim.transport, claim.port)) {
    if (addr === claim.addr) {
      const other = onSameKey(fleet, claim);
      if (other !== undefined) return { claim, other, otherAddr: addr };
    } else if (overlaps(addr, claim.addr)) {
      for (const family of claimFamilies) {
        const other = another(fleet.claims.owners(claim, addr, family), claim.owner);
        if (other !== undefined) return { claim, other, otherAddr: addr };
      }
    }
  }
  return undefined;
}

/** The first owner of any tcp listener on a port of a node: what a multiplex port there collides with. */
export function tcpListenerOn(fleet: Fleet, nodeId: string, port: number): { owner: string; addr: string } | undefined {
  for (const addr of fleet.claims.addresses(nodeId, 'tcp', port)) {
    for (const family of claimFamilies) {
      for (const owner of fleet.claims.owners({ nodeId, transport: 'tcp', port }, addr, family)) return { owner, addr };
    }
  }
  return undefined;
}

/** One sentence that names the other resource. */
export function collisionSentence(fleet: Fleet, collision: Collision, path: string): string {
  const { claim, other, otherAddr } = collision;
  const node = fleet.nodes.get(claim.nodeId)?.name ?? claim.nodeId;
  return (
    `${path}: the ${claim.transport} listener ${claim.addr} port ${claim.port} on node "${node}" collides with ` +
    `${describeOwner(fleet, other)} on ${otherAddr}`
  );
}

/** A resource as sentences name it: type, name and id. */
export function describeOwner(fleet: Fleet, owner: string): string {
  const [type = '', id = ''] = owner.split('/');
  switch (type) {
    case 'l4_chain':
      return `l4_chain "${fleet.chains.get(id)?.name ?? id}" (${id})`;
    case 'l4_upstream':
      return `l4_upstream "${fleet.upstreams.get(id)?.name ?? id}" (${id})`;
    case 'connectivity':
      return `the multiplex port of node "${fleet.nodes.get(id)?.name ?? id}" (connectivity settings)`;
    default:
      return owner;
  }
}

/** Some owners, sorted by name, at most ten spelled out. */
export function describeOwners(fleet: Fleet, owners: Iterable<string>): string {
  const all = [...owners].map((owner) => describeOwner(fleet, owner)).sort();
  const shown = all.slice(0, 10).join(', ');
  return all.length > 10 ? `${shown} and ${all.length - 10} more` : shown;
}

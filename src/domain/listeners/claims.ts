/**
 * What a chain claims on a node's listeners, and the index of all claims, so that a collision is found in O(1) however
 * many routes share a port. Implements `docs/contract/domain.md#listeners-and-collisions`.
 */
import type { ChainState, Hop, Payload } from '../chain/chain.js';
import { definitionsOf } from '../chain/status.js';
import type { Index, Journal } from '../aggregate/journal.js';
import { createIndex } from '../aggregate/journal.js';

/**
 * Routes of one family share a key under one rule: `names` and `local_key` when their values are distinct, `raw` not
 * at all, `exclusive` with nothing whatever.
 */
export type ClaimFamily = 'raw' | 'names' | 'local_key' | 'exclusive';
export const claimFamilies: readonly ClaimFamily[] = ['raw', 'names', 'local_key', 'exclusive'];

export interface Claim {
  /** `<resource type>/<resource id>`. */
  readonly owner: string;
  readonly nodeId: string;
  readonly transport: 'tcp' | 'udp';
  readonly addr: string;
  readonly port: number;
  readonly family: ClaimFamily;
  readonly values: readonly string[];
}

/** QUIC is udp, FAKE_TCP is tcp. */
export function hopTransport(hop: Pick<Hop, 'outer'>): 'tcp' | 'udp' {
  return hop.outer === 'tcp' || hop.outer === 'fake_tcp' ? 'tcp' : 'udp';
}

function hopFamily(payload: Payload, hop: Hop): { family: ClaimFamily; values: readonly string[] } {
  if (hop.outer === 'fake_tcp') return { family: 'exclusive', values: [] };
  const names = hop.server_names ?? [];
  if (payload === 'tcp' && names.length > 0) return { family: 'names', values: names };
  return { family: 'raw', values: [] };
}

export function chainOwner(chainId: string): string {
  return `l4_chain/${chainId}`;
}

/** A chain claims its current and its deployed listeners while it is enabled. */
export function claimsOfChain(chain: ChainState): readonly Claim[] {
  if (!chain.enabled) return [];
  const claims = definitionsOf(chain).flatMap((definition) =>
    definition.hops.map((hop): Claim => ({
      owner: chainOwner(chain.id),
      nodeId: hop.node_id,
      transport: hopTransport(hop),
      addr: hop.listen_addr,
      port: hop.listen_port,
      ...hopFamily(definition.payload, hop),
    })),
  );
  return claims;
}

export interface ClaimIndex {
  add(claim: Claim): void;
  remove(claim: Claim): void;
  /** Owners other than `except` on (node, transport, port), by address. */
  addresses(nodeId: string, transport: string, port: number): ReadonlySet<string>;
  owners(claim: Pick<Claim, 'nodeId' | 'transport' | 'port'>, addr: string, family: ClaimFamily): ReadonlySet<string>;
  ownersOfValue(claim: Claim, value: string): ReadonlySet<string>;
  /** Everything that is held, under keys of its own: to compare two indexes. */
  entries(): IterableIterator<[string, ReadonlySet<string>]>;
}

const portKey = (c: Pick<Claim, 'nodeId' | 'transport' | 'port'>): string => `${c.nodeId}/${c.transport}/${c.port}`;

export function createClaimIndex(journal: Journal): ClaimIndex {
  const addresses: Index = createIndex(journal);
  const byFamily: Index = createIndex(journal);
  const byValue: Index = createIndex(journal);
  const familyKey = (c: Pick<Claim, 'nodeId' | 'transport' | 'port'>, addr: string, family: ClaimFamily): string =>
    `${portKey(c)}/${addr}/${family}`;
  const valueKey = (c: Claim, value: string): string => `${familyKey(c, c.addr, c.family)}/${value}`;
  return {
    add(claim) {
      addresses.add(portKey(claim), claim.addr);
      byFamily.add(familyKey(claim, claim.addr, claim.family), claim.owner);
      for (const value of claim.values) byValue.add(valueKey(claim, value), claim.owner);
    },
    remove(claim) {
      byFamily.remove(familyKey(claim, claim.addr, claim.family), claim.owner);
      for (const value of claim.values) byValue.remove(valueKey(claim, value), claim.owner);
      const used = claimFamilies.some((family) => byFamily.get(familyKey(claim, claim.addr, family)).size > 0);
      if (!used) addresses.remove(portKey(claim), claim.addr);
    },
    addresses: (nodeId, transport, port) => addresses.get(`${nodeId}/${transport}/${port}`),
    owners: (claim, addr, family) => byFamily.get(familyKey(claim, addr, family)),
    ownersOfValue: (claim, value) => byValue.get(valueKey(claim, value)),
    *entries() {
      const indexes = [
        ['address', addresses],
        ['family', byFamily],
        ['value', byValue],
      ] as const;
      for (const [name, index] of indexes) for (const [key, found] of index.entries()) yield [`${name} ${key}`, found];
    },
  };
}

/**
 * Claims on the listeners of nodes, and the index of all claims, which finds a collision in constant time however many
 * routes share a port. Not which resource claims what: that is in each declaration.
 * Implements `docs/contract/domain.md#listeners-and-collisions`.
 */
import type { Index, Journal } from '../aggregate/journal.js';
import { createIndex } from '../aggregate/journal.js';
import type { Owner } from '../references/references.js';

/**
 * What may share a listener key: `names` claims with distinct values, `local_key` claims with distinct values, `raw` with
 * anything but another `raw`, `exclusive` with nothing.
 */
export type ClaimFamily = 'raw' | 'names' | 'local_key' | 'exclusive';
export const claimFamilies: readonly ClaimFamily[] = ['raw', 'names', 'local_key', 'exclusive'];

export interface Claim {
  readonly owner: Owner;
  readonly nodeId: string;
  readonly transport: 'tcp' | 'udp';
  readonly addr: string;
  readonly port: number;
  readonly family: ClaimFamily;
  readonly values: readonly string[];
}

type PortOfNode = Pick<Claim, 'nodeId' | 'transport' | 'port'>;

export interface ClaimIndex {
  add(claim: Claim): void;
  remove(claim: Claim): void;
  /** The addresses with a claim on the node, transport and port. */
  addresses(nodeId: string, transport: string, port: number): ReadonlySet<string>;
  owners(port: PortOfNode, addr: string, family: ClaimFamily): ReadonlySet<Owner>;
  ownersOfValue(claim: Claim, value: string): ReadonlySet<Owner>;
  /** Every entry under a unique key, to compare two indexes. */
  entries(): IterableIterator<[string, ReadonlySet<string>]>;
}

const portKey = (port: PortOfNode): string => `${port.nodeId}/${port.transport}/${port.port}`;

/** Tells two claims of one resource apart. */
export function claimKey(claim: Claim): string {
  return `${portKey(claim)}/${claim.addr}/${claim.family}/${claim.values.join(' ')}`;
}

export function createClaimIndex(journal: Journal): ClaimIndex {
  const addresses: Index = createIndex(journal);
  const byFamily: Index = createIndex(journal);
  const byValue: Index = createIndex(journal);
  const familyKey = (port: PortOfNode, addr: string, family: ClaimFamily): string =>
    `${portKey(port)}/${addr}/${family}`;
  const valueKey = (claim: Claim, value: string): string => `${familyKey(claim, claim.addr, claim.family)}/${value}`;
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
    owners: (port, addr, family) => byFamily.get(familyKey(port, addr, family)),
    ownersOfValue: (claim, value) => byValue.get(valueKey(claim, value)),
    *entries() {
      const indexes = [
        ['address', addresses],
        ['family', byFamily],
        ['value', byValue],
      ] as const;
      for (const [name, index] of indexes) {
        for (const [key, values] of index.entries()) yield [`${name} ${key}`, values];
      }
    },
  };
}

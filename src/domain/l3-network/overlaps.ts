/**
 * Addresses and routes of the members of one network compared with one another: equal addresses, overlapping routes, a route
 * over another member's address. A default route leads to everything that has no other route, so it collides only with
 * another default route of its family. Implements `docs/contract/domain.md#l3-network`.
 */
import type { Cidr } from '../../kernel/cidr.js';
import { formatCidr, hostOf, isDefaultRoute, overlappingPair, parseCidr } from '../../kernel/cidr.js';
import type { Member } from './l3-network.js';

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
 * The first two entries of different members that exclude each other, as a sentence that names both.
 * @param nodeName the name of a member's node, for the sentence
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

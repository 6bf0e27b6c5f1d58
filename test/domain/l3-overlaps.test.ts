/**
 * "Between members: equal host addresses, overlapping routes, and a route over another member's address are a 409; a default
 * route collides only with another default route" (`docs/contract/domain.md#l3-network`), against an oracle that looks up
 * every address of a small network.
 */
import fc from 'fast-check';
import { BlockList } from 'node:net';
import { describe, expect, it } from 'vitest';
import { overlapBetween } from '../../src/domain/l3-network/assign.js';

interface MemberOf {
  readonly node_id: string;
  readonly addresses: readonly string[];
  readonly routes: readonly string[];
}

const family = (address: string): 'ipv4' | 'ipv6' => (address.includes(':') ? 'ipv6' : 'ipv4');
const universe = Array.from({ length: 32 }, (_, host) => [`10.1.0.${host}`, `fd01::${host.toString(16)}`]).flat();
const hosts = (prefix: string, bits: readonly number[]) =>
  fc.tuple(fc.nat(31), fc.constantFrom(...bits)).map(([host, length]) => `${prefix}${host}/${length}`);
const networks = (prefix: string, width: number) =>
  fc.integer({ min: 0, max: 5 }).chain((free) => {
    const size = 2 ** free;
    return fc.nat(32 / size - 1).map((at) => {
      const host = width === 32 ? String(at * size) : (at * size).toString(16);
      return `${prefix}${host}/${width - free}`;
    });
  });
const address = fc.oneof(
  hosts('10.1.0.', [8, 24, 32]),
  fc.nat(31).map((host) => `fd01::${host.toString(16)}/64`),
);
const route = fc.oneof(
  networks('10.1.0.', 32),
  networks('fd01::', 128),
  fc.constantFrom('0.0.0.0/0', '::/0', '10.2.0.0/16', 'fd02::/16', '10.1.0.0/16'),
);
const members = fc
  .array(
    fc.record({
      addresses: fc.uniqueArray(address, { minLength: 1, maxLength: 2 }),
      routes: fc.uniqueArray(route, { maxLength: 2 }),
    }),
    { maxLength: 4 },
  )
  .map((list) => list.map((member, index): MemberOf => ({ node_id: `n${index}`, ...member })));

const isDefault = (cidr: string): boolean => cidr.endsWith('/0');
const hostOf = (cidr: string): string => cidr.slice(0, cidr.indexOf('/'));

const ranges = new Map<string, BlockList>();

/** Whether an address lies in a route, by Node's own sets of ranges. */
function leadsTo(cidr: string, host: string): boolean {
  if (family(cidr) !== family(host)) return false;
  let range = ranges.get(cidr);
  if (range === undefined) {
    range = new BlockList();
    range.addSubnet(hostOf(cidr), Number(cidr.slice(cidr.indexOf('/') + 1)), family(cidr));
    ranges.set(cidr, range);
  }
  return range.check(host, family(host));
}

/** Two members exclude each other when an address of the small network, or a default route, is of both. */
function exclude(a: MemberOf, b: MemberOf): boolean {
  const has = (one: MemberOf, host: string): boolean =>
    one.addresses.some((cidr) => hostOf(cidr) === host) ||
    one.routes.some((cidr) => !isDefault(cidr) && leadsTo(cidr, host));
  const elsewhere = a.routes.some((cidr) => !isDefault(cidr) && b.routes.includes(cidr));
  const both = a.routes.some((cidr) => isDefault(cidr) && b.routes.includes(cidr));
  return both || elsewhere || universe.some((host) => has(a, host) && has(b, host));
}

/** A member with nothing but one of its entries. */
function onlyEntry(list: readonly MemberOf[], index: number, kind: string | undefined, at: number): MemberOf {
  const { node_id, addresses, routes } = list[index]!;
  return kind === 'addresses'
    ? { node_id, addresses: [addresses[at]!], routes: [] }
    : { node_id, addresses: [], routes: [routes[at]!] };
}

describe('members of a network', () => {
  it('exclude each other exactly when the oracle says so, and the sentence names two that do', () => {
    let refused = 0;
    fc.assert(
      fc.property(members, (list) => {
        const expected = list.some((a, index) => list.slice(index + 1).some((b) => exclude(a, b)));
        const sentence = overlapBetween(list, (id) => `name of ${id}`);
        expect(sentence !== undefined, sentence).toBe(expected);
        if (sentence === undefined) return;
        refused += 1;
        const named = [...sentence.matchAll(/members\[(\d)\]\.(addresses|routes)\[(\d)\]/g)];
        expect(named).toHaveLength(2);
        const [one, other] = named.map(([, member, kind, at]) => onlyEntry(list, Number(member), kind, Number(at)));
        if (one === undefined || other === undefined) return;
        expect(exclude(one, other), sentence).toBe(true);
        expect(sentence).toContain(`"name of ${other.node_id}"`);
        expect(sentence.startsWith(`members[${one.node_id.slice(1)}]`)).toBe(true);
      }),
      { numRuns: 600 },
    );
    expect(refused).toBeGreaterThan(100);
    expect(refused).toBeLessThan(570);
  });

  it('with what is no address exclude nobody', () => {
    const of = (node_id: string, routes: readonly string[]) => ({ node_id, addresses: ['nonsense'], routes });
    const list = [of('n0', []), of('n1', ['nonsense'])];
    for (const each of [list, list.toReversed()]) expect(overlapBetween(each, (id) => id)).toBeUndefined();
  });
});

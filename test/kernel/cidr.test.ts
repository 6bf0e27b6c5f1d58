/** CIDRs: canonical text, and overlap compared with an oracle that looks up every address of a small network. */
import fc from 'fast-check';
import { BlockList } from 'node:net';
import { describe, expect, it } from 'vitest';
import {
  addressRanges,
  canonicalCidr,
  canonicalNetwork,
  overlap,
  overlappingPair,
  parseCidr,
  type Cidr,
} from '../../src/kernel/cidr.js';

describe('the canonical text of a CIDR', () => {
  it.each([
    ['10.0.0.1/24', '10.0.0.1/24'],
    ['0.0.0.0/0', '0.0.0.0/0'],
    ['10.0.0.1/32', '10.0.0.1/32'],
    ['FD00:0:0::1/64', 'fd00::1/64'],
    ['2001:0db8::10.0.0.1/128', '2001:db8::a00:1/128'],
    ['::/0', '::/0'],
    ['::ffff:10.0.0.0/104', '10.0.0.0/8'],
    ['::FFFF:a00:1/128', '10.0.0.1/32'],
    ['::ffff:0:0/96', '0.0.0.0/0'],
  ])('of %s is %s', (text, canonical) => expect(canonicalCidr(text)).toBe(canonical));

  it.each([
    '',
    '10.0.0.1',
    '/24',
    '10.0.0.1/',
    '10.0.0.1/33',
    '10.0.0.1/-1',
    '10.0.0.1/024',
    '10.0.0.1/1e1',
    '10.0.0.1/+8',
    '10.0.0.1/24/24',
    '10.0.0.1/255.255.255.0',
    '10.0.0.1 /24',
    '10.0.0/24',
    '010.0.0.1/24',
    'fd00::1/129',
    'fd00::1/0128',
    'fd00::1%eth0/64',
    '[fd00::1]/64',
    'a.example/24',
    // Wider than all of IPv4.
    '::ffff:10.0.0.0/95',
    '::ffff:10.0.0.0/129',
  ])('does not exist for "%s"', (text) => {
    expect(canonicalCidr(text)).toBeUndefined();
    expect(canonicalNetwork(text)).toBeUndefined();
  });

  it('of a network exists only without bits after the prefix', () => {
    for (const text of ['10.0.0.0/8', '10.128.0.0/9', '0.0.0.0/0', '10.0.0.1/32', 'fd00::/8', '::/0', 'fd00::1/128']) {
      expect(canonicalNetwork(text)).toBe(text);
    }
    for (const text of [
      '10.0.0.1/8',
      '10.64.0.0/9',
      '128.0.0.0/0',
      '10.0.0.1/31',
      'fd00::1/64',
      '8000::/0',
      'fd01::/8',
    ]) {
      expect(canonicalNetwork(text)).toBeUndefined();
      expect(canonicalCidr(text)).toBe(text);
    }
  });
});

describe('a set of ranges', () => {
  it.each<[string, readonly string[], readonly string[]]>([
    ['::/0', ['::1', '2001:db8::1', 'fe80::1%eth0'], ['127.0.0.1', '::ffff:127.0.0.1', '8.8.8.8']],
    ['0.0.0.0/0', ['127.0.0.1', '::ffff:8.8.8.8', '::FFFF:808:808'], ['::1', '2001:db8::1']],
    ['::ffff:10.0.0.0/104', ['10.1.2.3', '::ffff:10.1.2.3'], ['11.0.0.1', '::ffff:11.0.0.1', '::a00:1']],
    ['::ffff:10.0.0.1', ['10.0.0.1'], ['10.0.0.2']],
    ['2001:db8::/32', ['2001:DB8::1'], ['2001:db9::1', '', 'a.example', '10.0.0.1/8']],
  ])('%s holds addresses by family', (range, inside, outside) => {
    const holds = addressRanges([range]);
    expect(inside.filter((address) => !holds(address))).toEqual([]);
    expect(outside.filter(holds)).toEqual([]);
  });
});

/** The 64 addresses that the oracle looks up, and CIDRs in, around and beside them. */
const hosts = Array.from({ length: 64 }, (_, host) => [`10.9.8.${host}`, `fd09::8:${host.toString(16)}`]).flat();
const family = (address: string): 'ipv4' | 'ipv6' => (address.includes(':') ? 'ipv6' : 'ipv4');
const cidrText = fc.oneof(
  fc.tuple(fc.nat(63), fc.integer({ min: 24, max: 32 })).map(([host, bits]) => `10.9.8.${host}/${bits}`),
  fc
    .tuple(fc.nat(63), fc.integer({ min: 120, max: 128 }))
    .map(([host, bits]) => `fd09::8:${host.toString(16)}/${bits}`),
  fc.constantFrom('10.0.0.0/8', '0.0.0.0/0', '::/0', 'fd09::/16', '10.9.8.0/27', '10.9.8.32/27'),
);
const read = (text: string): Cidr => parseCidr(text) ?? expect.fail(`${text} is no CIDR`);

const lookedUp = new Map<string, ReadonlySet<string>>();

/** The looked-up addresses in a CIDR, by Node's own sets of ranges. */
function within(text: string): ReadonlySet<string> {
  const known = lookedUp.get(text);
  if (known !== undefined) return known;
  const range = new BlockList();
  const [address = '', bits] = text.split('/');
  range.addSubnet(address, Number(bits), family(address));
  const inside = hosts.filter((host) => family(host) === family(address) && range.check(host, family(host)));
  lookedUp.set(text, new Set(inside));
  return within(text);
}

const meet = (a: ReadonlySet<string>, b: ReadonlySet<string>): boolean => [...a].some((host) => b.has(host));

describe('overlap', () => {
  it('is that two CIDRs have an address in common, in any order', () => {
    let overlapping = 0;
    fc.assert(
      fc.property(cidrText, cidrText, (a, b) => {
        const expected = meet(within(a), within(b));
        if (expected) overlapping += 1;
        expect(overlap(read(a), read(b))).toBe(expected);
        expect(overlap(read(b), read(a))).toBe(expected);
      }),
      { numRuns: 300 },
    );
    expect(overlapping).toBeGreaterThan(30);
  });

  it('between groups is found in lists of any order, and the pair that is named overlaps', () => {
    let found = 0;
    const entries = fc.array(fc.record({ text: cidrText, group: fc.nat(3) }), { maxLength: 12 });
    fc.assert(
      fc.property(entries, (list) => {
        const pair = overlappingPair(list.map((entry) => ({ ...entry, cidr: read(entry.text) })));
        const sets = list.map(({ text, group }) => ({ group, set: within(text) }));
        const expected = sets.some((one, at) =>
          sets.slice(at + 1).some((other) => one.group !== other.group && meet(one.set, other.set)),
        );
        expect(pair !== undefined).toBe(expected);
        if (pair === undefined) return;
        found += 1;
        expect(pair[0].group).not.toBe(pair[1].group);
        expect(meet(within(pair[0].text), within(pair[1].text))).toBe(true);
      }),
      { numRuns: 300 },
    );
    expect(found).toBeGreaterThan(30);
    expect(found).toBeLessThan(285);
  });

  it('of IPv4 and IPv6 never is, not even of their default routes', () => {
    expect(overlap(read('0.0.0.0/0'), read('::/0'))).toBe(false);
    expect(overlap(read('0.0.0.1/32'), read('::1/128'))).toBe(false);
  });

  it('of the neighbours at a boundary is not', () => {
    expect(overlap(read('10.0.0.0/25'), read('10.0.0.128/25'))).toBe(false);
    expect(overlap(read('10.0.0.0/24'), read('10.0.0.255/32'))).toBe(true);
    expect(overlap(read('255.255.255.255/32'), read('0.0.0.0/1'))).toBe(false);
    expect(overlap(read('fd00::/127'), read('fd00::2/127'))).toBe(false);
  });
});

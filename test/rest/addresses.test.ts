/** `docs/contract/rest.md#envelope`: addresses are accepted in any valid notation and answered in canonical form (RFC 5952). */
import { isIP } from 'node:net';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  canonicalDnsName,
  canonicalEndpoint,
  canonicalHost,
  canonicalIp,
  canonicalNamePattern,
  canonicalUnicastIp,
} from '../../src/kernel/addresses.js';

test.each([
  ['2001:0DB8:0:0:0:0:2:1', '2001:db8::2:1'],
  ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
  ['2001:db8::1:0:0:1', '2001:db8::1:0:0:1'],
  ['2001:0:0:1:0:0:0:1', '2001:0:0:1::1'],
  ['0:0:0:0:0:0:0:0', '::'],
  ['0:0:0:0:0:0:0:1', '::1'],
  ['1:0:0:0:0:0:0:0', '1::'],
  ['::FFFF:192.0.2.128', '192.0.2.128'],
  ['::ffff:c000:280', '192.0.2.128'],
  ['64:ff9b::192.0.2.33', '64:ff9b::c000:221'],
  ['::1.2.3.4', '::102:304'],
  ['192.0.2.1', '192.0.2.1'],
])('%s becomes %s', (text, canonical) => expect(canonicalIp(text)).toBe(canonical));

test.each(['192.0.2.01', '192.0.2', '1.2.3.256', '::1%eth0', '[::1]', ':::', '1::2::3', '', 'a'])(
  '%j is not an address',
  (text) => expect(canonicalIp(text)).toBeUndefined(),
);

test('every spelling of an IPv4-mapped IPv6 address is that IPv4 address', () => {
  fc.assert(
    fc.property(fc.ipV4(), fc.constantFrom('::ffff:', '0:0:0:0:0:FFFF:', '::FfFf:'), fc.boolean(), (ip, start, hex) => {
      const [a = 0, b = 0, c = 0, d = 0] = ip.split('.').map(Number);
      const end = hex ? `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}` : ip;
      expect(canonicalIp(`${start}${end}`)).toBe(ip);
    }),
  );
});

test('one listens on, and dials, unicast addresses alone', () => {
  for (const address of ['0.0.0.0', '::', '127.0.0.1', '223.255.255.255', 'fe80::1', '240.0.0.1'])
    expect(canonicalUnicastIp(address)).toBe(address);
  for (const address of ['224.0.0.1', '239.255.255.255', '255.255.255.255', 'ff02::1', '::ffff:224.0.0.1', 'a'])
    expect([address, canonicalUnicastIp(address)]).toEqual([address, undefined]);
});

const group = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 0xffff }));
test('every spelling of an IPv6 address has one canonical form, which is its own canonical form', () => {
  fc.assert(
    fc.property(fc.array(group, { minLength: 8, maxLength: 8 }), fc.boolean(), (groups, upper) => {
      const long = groups.map((one) => one.toString(16).padStart(4, '0')).join(':');
      const short = groups.map((one) => one.toString(16)).join(':');
      const form = canonicalIp(short) ?? '';
      expect(isIP(form)).toBeGreaterThan(0);
      expect(canonicalIp(upper ? long.toUpperCase() : long)).toBe(form);
      expect(canonicalIp(form)).toBe(form);
      expect(new URL(`http://[${short}]/`).hostname === `[${form}]` || form.includes('.')).toBe(true);
    }),
  );
});

test('names, name patterns, hosts and endpoints are lower-cased or refused', () => {
  expect(canonicalDnsName('Gate-1.EXAMPLE')).toBe('gate-1.example');
  expect(canonicalDnsName('_srv.example')).toBe('_srv.example');
  expect(canonicalDnsName('a'.repeat(63))).toBe('a'.repeat(63));
  for (const bad of [
    '',
    '.',
    'a.',
    '.a',
    'a..b',
    '-a',
    'a-',
    'a'.repeat(64),
    'ä.example',
    'a b',
    '10.0.0.1',
    'a.1',
    '*.a',
    `${'a.'.repeat(127)}ab`,
  ]) {
    expect([bad, canonicalDnsName(bad)]).toEqual([bad, undefined]);
  }
  expect(canonicalNamePattern('*.A.b')).toBe('*.a.b');
  for (const bad of ['*', '*.', '*.*.a', 'a.*.b', '**.a'])
    expect([bad, canonicalNamePattern(bad)]).toEqual([bad, undefined]);
  expect(canonicalHost('FE80::0001')).toBe('fe80::1');
  expect(canonicalEndpoint('EXAMPLE.org:443')).toBe('example.org:443');
  expect(canonicalEndpoint('[0:0::1]:1')).toBe('[::1]:1');
  expect(canonicalEndpoint('[::FFFF:127.0.0.1]:80')).toBe('127.0.0.1:80');
  for (const bad of [
    '::1:80',
    '[10.0.0.1]:80',
    'a:0',
    'a:65536',
    'a:01',
    'a',
    ':1',
    'a:1 ',
    'a:b:1',
    '[::1]',
    '[a]:1',
    '',
    'http://a:1',
  ]) {
    expect([bad, canonicalEndpoint(bad)]).toEqual([bad, undefined]);
  }
});

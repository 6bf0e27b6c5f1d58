import fc from 'fast-check';
import { expect, it } from 'vitest';
import { isDialableIp } from '../../src/kernel/addresses.js';

it.each([
  '127.0.0.1',
  '127.255.255.254',
  '0.0.0.0',
  '0.1.2.3',
  '169.254.0.1',
  '169.254.169.254',
  '224.0.0.1',
  '239.255.255.255',
  '::',
  '::1',
  '0:0:0:0:0:0:0:1',
  'fe80::1',
  'febf::1',
  'fe80::1%eth0',
  'ff02::1',
  'ff0e::1',
  '::ffff:127.0.0.1',
  '::ffff:7f00:1',
  '0:0:0:0:0:FFFF:7F00:0001',
  '::ffff:0.0.0.0',
  '::ffff:169.254.1.1',
  '::ffff:224.0.0.1',
  'localhost',
  '',
])('%s means the dialling machine or its link, or is no address', (address) => {
  expect(isDialableIp(address)).toBe(false);
});

it.each([
  '1.2.3.4',
  '10.0.0.1',
  '126.255.255.255',
  '128.0.0.1',
  '169.253.255.255',
  '169.255.0.0',
  '192.168.1.1',
  '223.255.255.255',
  '2001:db8::1',
  '::2',
  'fd00::1',
  'fe7f::1',
  'fec0::1',
  '::ffff:10.0.0.1',
  '::fffe:127.0.0.1',
])('%s can be another machine', (address) => {
  expect(isDialableIp(address)).toBe(true);
});

it('an IPv4 address and its mapped form are judged alike', () => {
  fc.assert(
    fc.property(fc.ipV4(), (address) => {
      expect(isDialableIp(`::ffff:${address}`)).toBe(isDialableIp(address));
    }),
  );
});

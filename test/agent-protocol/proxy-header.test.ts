/** The PROXY protocol v2 header, as bytes. That none confuse its reader is in `../fuzz/parsers.test.ts`. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { canonicalIp } from '../../src/kernel/addresses.js';
import { proxyHeaderMaxBytes, proxySignature, readProxyHeader } from '../../src/transport/listener/sniff.js';
import { extension, localProxyHeader, proxyHeader, rawProxyHeader } from '../support/proxy-header.js';

const extensions = fc
  .array(fc.tuple(fc.integer({ min: 0, max: 255 }), fc.uint8Array({ maxLength: 64 })), { maxLength: 4 })
  .map((list) => Buffer.concat(list.map(([type, value]) => extension(type, value))));
const ipv6 = fc.ipV6().filter((text) => !text.toLowerCase().includes('ffff:'));
const client = fc.oneof(fc.ipV4(), ipv6);
const header = fc.oneof(
  fc.tuple(client, extensions).map(([address, more]) => ({
    bytes: proxyHeader(address, 1234, more),
    client: canonicalIp(address),
  })),
  extensions.map((more) => ({ bytes: localProxyHeader(more), client: undefined })),
  extensions.map((more) => ({ bytes: rawProxyHeader(0x21, 0x00, more), client: undefined })),
);

test('a whole header names its client and its own length, whatever follows it', () => {
  fc.assert(
    fc.property(header, fc.uint8Array({ maxLength: 100 }), ({ bytes, client: named }, rest) => {
      expect(readProxyHeader(Buffer.concat([bytes, rest]))).toEqual({
        kind: 'complete',
        length: bytes.length,
        client: named,
      });
    }),
  );
});

test('every beginning of a header is incomplete', () => {
  fc.assert(
    fc.property(header, ({ bytes }) => {
      for (let length = 0; length < bytes.length; length += 1) {
        expect(readProxyHeader(bytes.subarray(0, length)).kind).toBe('incomplete');
      }
    }),
  );
});

test('a header with one changed byte is malformed, or a header of the length that it says', () => {
  fc.assert(
    fc.property(header, fc.nat(), fc.integer({ min: 1, max: 255 }), ({ bytes }, where, change) => {
      const index = where % bytes.length;
      const changed = Buffer.from(bytes);
      changed[index] = changed[index]! ^ change;
      const result = readProxyHeader(changed);
      const length = 16 + changed.readUInt16BE(14);
      const isCommand = changed[12] === 0x20 || changed[12] === 0x21;
      if (index < proxySignature.length || !isCommand) expect(result.kind).toBe('malformed');
      else if (result.kind === 'complete') expect(result.length).toBe(length);
      else if (result.kind === 'incomplete') expect(length).toBeGreaterThan(changed.length);
    }),
  );
});

test('an IPv4-mapped client is an IPv4 client', () => {
  expect(readProxyHeader(proxyHeader('::ffff:198.51.100.7'))).toMatchObject({ client: '198.51.100.7' });
});

test.each([
  ['version 1', Buffer.from('PROXY TCP4 198.51.100.7 192.0.2.1 40000 8443\r\n', 'latin1')],
  ['another version', rawProxyHeader(0x31, 0x11, Buffer.alloc(12))],
  ['an unknown command', rawProxyHeader(0x22, 0x11, Buffer.alloc(12))],
  ['datagrams over IPv4', rawProxyHeader(0x21, 0x12, Buffer.alloc(12))],
  ['datagrams over IPv6', rawProxyHeader(0x21, 0x22, Buffer.alloc(36))],
  ['a UNIX socket', rawProxyHeader(0x21, 0x31, Buffer.alloc(216))],
  ['a family without a transport', rawProxyHeader(0x21, 0x10, Buffer.alloc(12))],
  ['IPv4 addresses that are cut off', rawProxyHeader(0x21, 0x11, Buffer.alloc(11))],
  ['IPv6 addresses that are cut off', rawProxyHeader(0x21, 0x21, Buffer.alloc(35))],
  ['more bytes than are read', rawProxyHeader(0x20, 0x00, Buffer.alloc(proxyHeaderMaxBytes - 15))],
])('%s is malformed, before the rest of it has arrived', (_, bytes) => {
  expect(readProxyHeader(bytes)).toEqual({ kind: 'malformed' });
  expect(readProxyHeader(bytes.subarray(0, 16))).toEqual({ kind: 'malformed' });
});

test('with LOCAL the family means nothing, and the longest header is read', () => {
  const bytes = rawProxyHeader(0x20, 0x77, Buffer.alloc(proxyHeaderMaxBytes - 16));
  expect(readProxyHeader(bytes)).toEqual({ kind: 'complete', length: proxyHeaderMaxBytes, client: undefined });
});

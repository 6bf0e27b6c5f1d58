/** PROXY protocol v2 headers as a balancer writes them, valid or with any field as a test wants it. */
import { isIPv4 } from 'node:net';
import ipaddr from 'ipaddr.js';
import { canonicalIp } from '../../src/kernel/addresses.js';

const signature = Buffer.from('0d0a0d0a000d0a515549540a', 'hex');

/** @param rest addresses and extensions */
export function rawProxyHeader(versionAndCommand: number, family: number, rest: Uint8Array): Buffer {
  const head = Buffer.from([versionAndCommand, family, rest.length >> 8, rest.length & 255]);
  return Buffer.concat([signature, head, rest]);
}

/** An extension (TLV). */
export function extension(type: number, value: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from([type, value.length >> 8, value.length & 255]), value]);
}

/** The header of a TCP connection from `client`, an IPv4 or IPv6 literal without a zone. */
export function proxyHeader(client: string, clientPort = 40_000, extensions: Uint8Array = new Uint8Array()): Buffer {
  const ports = Buffer.from([clientPort >> 8, clientPort & 255, 0x20, 0xfb]);
  if (isIPv4(client)) {
    const addresses = Buffer.from([...client.split('.').map(Number), 192, 0, 2, 1]);
    return rawProxyHeader(0x21, 0x11, Buffer.concat([addresses, ports, extensions]));
  }
  const address = ipaddr.parse(canonicalIp(client) ?? client);
  const source = Buffer.from((address instanceof ipaddr.IPv4 ? address.toIPv4MappedAddress() : address).toByteArray());
  return rawProxyHeader(0x21, 0x21, Buffer.concat([source, Buffer.alloc(16, 1), ports, extensions]));
}

/** What a balancer sends for its own checks. */
export const localProxyHeader = (extensions: Uint8Array = new Uint8Array()): Buffer =>
  rawProxyHeader(0x20, 0x00, extensions);

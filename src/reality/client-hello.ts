/**
 * Reads a ClientHello (RFC 8446, section 4.1.2) as far as REALITY needs it. Pure; takes any bytes. What a server decides by
 * it is in `src/transport/listener/reality/`.
 */
import { extension, group, messageType, tls13 } from './codes.js';
import { Malformed, createReader, unlessMalformed } from './vectors.js';
import type { Reader } from './vectors.js';

export interface ClientHello {
  /** The message with its header. */
  readonly bytes: Buffer;
  readonly random: Buffer;
  /** Part of `bytes`. */
  readonly sessionId: Buffer;
  /** Where the session id begins in `bytes`. */
  readonly sessionIdAt: number;
  /** As sent; undefined if none was. */
  readonly serverName: string | undefined;
  readonly offersTls13: boolean;
  readonly protocols: readonly string[];
  /** The key shares of the groups that REALITY knows, of the right length. */
  readonly x25519: Buffer | undefined;
  readonly hybrid: Buffer | undefined;
}

const x25519ShareBytes = 32;
/** An ML-KEM-768 encapsulation key, then an X25519 public key. */
const hybridClientShareBytes = 1184 + x25519ShareBytes;

/** @param bytes a whole message with its header; undefined if it is not well-formed */
export function readClientHello(bytes: Buffer): ClientHello | undefined {
  return unlessMalformed(() => read(bytes));
}

function read(bytes: Buffer): ClientHello {
  const outer = createReader(bytes);
  if (outer.uint(1) !== messageType.clientHello) throw new Malformed('not a ClientHello');
  const lengthBytes = 3;
  const body = createReader(outer.vector(lengthBytes));
  outer.end();
  body.uint(2);
  const random = body.take(32);
  const sessionIdAt = 1 + lengthBytes + body.at + 1;
  const sessionId = body.vector(1);
  if (sessionId.length > 32) throw new Malformed('a session id has more than 32 bytes');
  if (body.vector(2).length < 2) throw new Malformed('no cipher suites');
  if (body.vector(1).length === 0) throw new Malformed('no compression methods');
  const found = readExtensions(body.vector(2));
  body.end();
  const shares = found.get(extension.keyShare);
  const share = shares === undefined ? undefined : readKeyShares(shares);
  return {
    bytes,
    random,
    sessionId,
    sessionIdAt,
    serverName: readServerName(found.get(extension.serverName)),
    offersTls13: readVersions(found.get(extension.supportedVersions)).includes(tls13),
    protocols: readProtocols(found.get(extension.alpn)),
    x25519: share?.(group.x25519, x25519ShareBytes),
    hybrid: share?.(group.x25519MlKem768, hybridClientShareBytes),
  };
}

function readExtensions(bytes: Buffer): ReadonlyMap<number, Buffer> {
  const reader = createReader(bytes);
  const found = new Map<number, Buffer>();
  while (reader.left > 0) {
    const type = reader.uint(2);
    const content = reader.vector(2);
    // Two of one type would let two readers see two contents.
    if (found.has(type)) throw new Malformed('an extension comes twice');
    found.set(type, content);
  }
  return found;
}

/** The list that fills the content of an extension. */
function listIn(content: Buffer, lengthBytes: 1 | 2): Reader {
  const outer = createReader(content);
  const list = createReader(outer.vector(lengthBytes));
  outer.end();
  return list;
}

function readServerName(content: Buffer | undefined): string | undefined {
  if (content === undefined) return undefined;
  const names = listIn(content, 2);
  let name: string | undefined;
  while (names.left > 0) {
    const type = names.uint(1);
    const value = names.vector(2);
    if (type !== 0) continue;
    if (name !== undefined || value.length === 0) throw new Malformed('a server name comes twice, or is empty');
    name = value.toString('latin1');
  }
  return name;
}

function readVersions(content: Buffer | undefined): readonly number[] {
  if (content === undefined) return [];
  const list = listIn(content, 1);
  const versions: number[] = [];
  while (list.left > 0) versions.push(list.uint(2));
  return versions;
}

function readProtocols(content: Buffer | undefined): readonly string[] {
  if (content === undefined) return [];
  const list = listIn(content, 2);
  const protocols: string[] = [];
  while (list.left > 0) protocols.push(list.vector(1).toString('latin1'));
  return protocols;
}

/** The first share of a group; one of another length than the group's does not count. */
function readKeyShares(content: Buffer): (id: number, length: number) => Buffer | undefined {
  const list = listIn(content, 2);
  const shares: { readonly id: number; readonly share: Buffer }[] = [];
  while (list.left > 0) shares.push({ id: list.uint(2), share: list.vector(2) });
  return (id, length) => shares.find((one) => one.id === id && one.share.length === length)?.share;
}

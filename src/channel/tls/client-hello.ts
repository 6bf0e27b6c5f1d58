/**
 * Parses a ClientHello (RFC 8446, section 4.1.2; its server name: RFC 6066, section 3). Pure; accepts any bytes.
 * `src/transport/listener/reality/` decides about agents that connect, `src/agent/relays/first-bytes.ts` about the
 * agent's own clients.
 */
import { extension, group, legacyVersion, messageType, tls13 } from './codes.js';
import { Malformed, createReader, unlessMalformed, type Reader } from './vectors.js';

/** The fields that every ClientHello has, in any version of TLS. */
export interface HelloFields {
  /** The message with its header. */
  readonly bytes: Buffer;
  readonly random: Buffer;
  /** A view into `bytes`. */
  readonly sessionId: Buffer;
  /** Offset of the session id in `bytes`. */
  readonly sessionIdAt: number;
  /** As sent; undefined if absent. */
  readonly serverName: string | undefined;
  /** Contents by type. */
  readonly extensions: ReadonlyMap<number, Buffer>;
}

/** A ClientHello and what it offers to a TLS 1.3 server. */
export interface ClientHello extends Omit<HelloFields, 'extensions'> {
  readonly offersTls13: boolean;
  readonly protocols: readonly string[];
  /** The key shares of the groups that REALITY supports, if they have the right length. */
  readonly x25519: Buffer | undefined;
  readonly hybrid: Buffer | undefined;
}

const x25519ShareBytes = 32;
/** An ML-KEM-768 encapsulation key, then an X25519 public key. */
const hybridClientShareBytes = 1184 + x25519ShareBytes;

/** @param bytes a whole message with its header; undefined if it is malformed */
export function readHelloFields(bytes: Buffer): HelloFields | undefined {
  return unlessMalformed(() => fieldsOf(bytes));
}

/** @param bytes as above; undefined also if its offers are malformed */
export function readClientHello(bytes: Buffer): ClientHello | undefined {
  return unlessMalformed(() => {
    const { extensions, ...fields } = fieldsOf(bytes);
    const share = readKeyShares(extensions.get(extension.keyShare));
    return {
      ...fields,
      offersTls13: readVersions(extensions.get(extension.supportedVersions)).includes(tls13),
      protocols: readProtocols(extensions.get(extension.alpn)),
      x25519: share(group.x25519, x25519ShareBytes),
      hybrid: share(group.x25519MlKem768, hybridClientShareBytes),
    };
  });
}

function fieldsOf(bytes: Buffer): HelloFields {
  const outer = createReader(bytes);
  if (outer.uint(1) !== messageType.clientHello) throw new Malformed('not a ClientHello');
  const lengthBytes = 3;
  const body = createReader(outer.vector(lengthBytes));
  outer.end();
  if (body.uint(1) !== legacyVersion >> 8) throw new Malformed('not a version of TLS');
  body.uint(1);
  const random = body.take(32);
  const sessionIdAt = 1 + lengthBytes + body.at + 1;
  const sessionId = body.vector(1);
  if (sessionId.length > 32) throw new Malformed('a session id has more than 32 bytes');
  const suites = body.vector(2).length;
  if (suites < 2 || suites % 2 !== 0) throw new Malformed('no cipher suites, or half a one');
  if (body.vector(1).length === 0) throw new Malformed('no compression methods');
  // Versions before 1.3 allow a hello without extensions.
  const extensions: ReadonlyMap<number, Buffer> = body.left === 0 ? new Map() : readExtensions(body.vector(2));
  body.end();
  const serverName = readServerName(extensions.get(extension.serverName));
  return { bytes, random, sessionId, sessionIdAt, serverName, extensions };
}

function readExtensions(bytes: Buffer): ReadonlyMap<number, Buffer> {
  const reader = createReader(bytes);
  const found = new Map<number, Buffer>();
  while (reader.left > 0) {
    const type = reader.uint(2);
    const content = reader.vector(2);
    // With a duplicate, two readers could see different contents.
    if (found.has(type)) throw new Malformed('an extension comes twice');
    found.set(type, content);
  }
  return found;
}

/** A reader of the list that fills an extension. */
function listIn(content: Buffer, lengthBytes: 1 | 2): Reader {
  const outer = createReader(content);
  const list = createReader(outer.vector(lengthBytes));
  outer.end();
  return list;
}

const hostName = 0;

function readServerName(content: Buffer | undefined): string | undefined {
  if (content === undefined) return undefined;
  const names = listIn(content, 2);
  if (names.left === 0) throw new Malformed('no server name in the list of them');
  let name: string | undefined;
  while (names.left > 0) {
    const type = names.uint(1);
    const value = names.vector(2);
    if (value.length === 0) throw new Malformed('a server name is empty');
    if (type !== hostName) continue;
    // With two names, two readers could see different ones.
    if (name !== undefined) throw new Malformed('a server name comes twice');
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

/** The first share of a group; a share whose length does not fit the group is ignored. */
function readKeyShares(content: Buffer | undefined): (id: number, length: number) => Buffer | undefined {
  if (content === undefined) return () => undefined;
  const list = listIn(content, 2);
  const shares: { readonly id: number; readonly share: Buffer }[] = [];
  while (list.left > 0) shares.push({ id: list.uint(2), share: list.vector(2) });
  return (id, length) => shares.find((one) => one.id === id && one.share.length === length)?.share;
}

/**
 * Parses a ClientHello (RFC 8446, section 4.1.2; its server name: RFC 6066, section 3). Pure; accepts any bytes.
 * `src/transport/listener/reality/` decides about agents that connect, `src/agent/relays/first-bytes.ts` about the
 * agent's own clients.
 */
import { extension, group, legacyVersion, messageType, tls13 } from './codes.js';
import { Malformed, createReader, readList, readWhole, unlessMalformed, type Reader } from './vectors.js';

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
    const shares = listIn(extensions.get(extension.keyShare), 2, (list) => ({ id: list.uint(2), key: list.vector(2) }));
    /** The first share of a group; a share whose length does not fit the group is ignored. */
    const share = (id: number, length: number): Buffer | undefined =>
      shares.find((one) => one.id === id && one.key.length === length)?.key;
    return {
      ...fields,
      offersTls13: listIn(extensions.get(extension.supportedVersions), 1, (list) => list.uint(2)).includes(tls13),
      protocols: listIn(extensions.get(extension.alpn), 2, (list) => list.vector(1).toString('latin1')),
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
  const list = readList(bytes, (one) => [one.uint(2), one.vector(2)] as const);
  const found = new Map(list);
  // With a duplicate, two readers could see different contents.
  if (found.size < list.length) throw new Malformed('an extension comes twice');
  return found;
}

/** What is in the list that fills an extension; nothing without the extension. */
function listIn<T>(content: Buffer | undefined, lengthBytes: 1 | 2, read: (list: Reader) => T): readonly T[] {
  if (content === undefined) return [];
  const list = readWhole(content, (outer) => outer.vector(lengthBytes));
  return readList(list, read);
}

const hostName = 0;

function readServerName(content: Buffer | undefined): string | undefined {
  const names = listIn(content, 2, (list) => ({ type: list.uint(1), value: list.vector(2) }));
  if (content !== undefined && names.length === 0) throw new Malformed('no server name in the list of them');
  if (names.some(({ value }) => value.length === 0)) throw new Malformed('a server name is empty');
  const [name, another] = names.filter(({ type }) => type === hostName);
  // With two names, two readers could see different ones.
  if (another !== undefined) throw new Malformed('a server name comes twice');
  return name?.value.toString('latin1');
}

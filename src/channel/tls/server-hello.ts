/**
 * Parses a ServerHello (RFC 8446, section 4.1.3), and replaces its key share: a REALITY server answers with the
 * target's own ServerHello, changed only in that. Pure; accepts any bytes.
 */
import { extension, group, legacyVersion, messageHeaderBytes, messageType, tls13 } from './codes.js';
import { suiteOf, type Suite } from './suites.js';
import { Malformed, createReader, unlessMalformed } from './vectors.js';

type Group = (typeof group)[keyof typeof group];

export interface ServerHello {
  /** The message with its header. */
  readonly bytes: Buffer;
  readonly suite: Suite;
  readonly group: Group;
  /** A view into `bytes`. */
  readonly share: Buffer;
  /** Offset of the share in `bytes`. */
  readonly shareAt: number;
}

/** The random of a HelloRetryRequest: SHA-256 of that name. */
const retryRandom = Buffer.from('cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c', 'hex');

/** An ML-KEM-768 ciphertext, then an X25519 public key. */
const shareBytes: { readonly [id in Group]: number } = { [group.x25519]: 32, [group.x25519MlKem768]: 1088 + 32 };

/**
 * @param bytes a whole message with its header
 * @returns undefined unless it agrees on TLS 1.3 with a known suite and group; a HelloRetryRequest does not
 */
export function readServerHello(bytes: Buffer): ServerHello | undefined {
  return unlessMalformed(() => read(bytes));
}

/** Classifies a ServerHello that `readServerHello` does not accept. */
export function whatElse(bytes: Buffer): 'retry' | 'older_version' | 'malformed' {
  const randomAt = messageHeaderBytes + 2;
  if (bytes.length < randomAt + retryRandom.length || bytes[0] !== messageType.serverHello) return 'malformed';
  if (bytes.subarray(randomAt, randomAt + retryRandom.length).equals(retryRandom)) return 'retry';
  const supportedVersions = Buffer.of(0, extension.supportedVersions, 0, 2, tls13 >> 8, tls13 & 0xff);
  return bytes.includes(supportedVersions, randomAt) ? 'malformed' : 'older_version';
}

function read(bytes: Buffer): ServerHello {
  const outer = createReader(bytes);
  if (outer.uint(1) !== messageType.serverHello) throw new Malformed('not a ServerHello');
  const bodyAt = outer.at + 3;
  const body = createReader(outer.vector(3));
  outer.end();
  if (body.uint(2) !== legacyVersion) throw new Malformed('not TLS 1.3');
  if (body.take(32).equals(retryRandom)) throw new Malformed('a HelloRetryRequest');
  body.vector(1);
  const suite = suiteOf(body.uint(2));
  if (suite === undefined) throw new Malformed('an unknown cipher suite');
  if (body.uint(1) !== 0) throw new Malformed('compression');
  const extensions = createReader(body.take(body.uint(2)));
  const extensionsAt = bodyAt + body.at - extensions.left;
  body.end();
  let version: number | undefined;
  let agreed: { readonly group: Group; readonly share: Buffer; readonly shareAt: number } | undefined;
  while (extensions.left > 0) {
    const type = extensions.uint(2);
    const contentAt = extensionsAt + extensions.at + 2;
    const content = createReader(extensions.vector(2));
    if (type === extension.supportedVersions) version = content.uint(2);
    if (type === extension.keyShare) {
      const id = groupOf(content.uint(2));
      const share = content.vector(2);
      content.end();
      if (share.length !== shareBytes[id]) throw new Malformed('a key share of the wrong length');
      agreed = { group: id, share, shareAt: contentAt + 4 };
    }
  }
  if (version !== tls13 || agreed === undefined) throw new Malformed('not TLS 1.3');
  return { bytes, suite, ...agreed };
}

function groupOf(id: number): Group {
  if (id === group.x25519 || id === group.x25519MlKem768) return id;
  throw new Malformed('an unknown group');
}

/** The same message with another share of the same group. */
export function withShare(hello: ServerHello, share: Uint8Array): Buffer {
  const bytes = Buffer.from(hello.bytes);
  bytes.set(share, hello.shareAt);
  return bytes;
}

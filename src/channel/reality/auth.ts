/**
 * How a client proves, inside the session id of an ordinary ClientHello, that it knows a server's public key and one of
 * its short ids: 16 bytes, sealed under a key that only these two can derive. Pure. Implements
 * `docs/reality.md#the-session-id`.
 */
import { createCipheriv, createDecipheriv } from 'node:crypto';
import { agreeX25519, hkdfSha256, type X25519KeyPair } from '../../kernel/crypto/crypto.js';

const shortIdBytes = 8;
const tagBytes = 16;
const plaintextBytes = 16;
export const sessionIdBytes = plaintextBytes + tagBytes;
/** The first bytes of a hello's random are the salt of the key, the rest is the nonce. */
const saltBytes = 20;
const randomBytes = 32;
const keyInfo = Buffer.from('REALITY', 'latin1');

/** What a client claims in its session id. */
export interface SessionClaim {
  /** The version of the client program: major, minor, patch, each 0 to 255. */
  readonly version: readonly [number, number, number];
  /** The client's clock, in whole seconds since the Unix epoch. */
  readonly seconds: number;
  readonly shortId: Buffer;
}

/** A short id in REALITY's wire form: the bytes of the hexadecimal digits, then zeros up to eight bytes. */
export function shortIdFromHex(digits: string): Buffer {
  const bytes = Buffer.alloc(shortIdBytes);
  bytes.write(digits, 'hex');
  return bytes;
}

/**
 * The key that binds a session id and a certificate to one ClientHello; undefined if the peer's key has small order.
 * @param random of the ClientHello
 */
export function authKeyOf(own: X25519KeyPair, peer: Uint8Array, random: Buffer): Uint8Array | undefined {
  const shared = agreeX25519(own.privateKey, peer);
  return shared && hkdfSha256(random.subarray(0, saltBytes), shared, keyInfo, 32);
}

/**
 * The session id of a ClientHello.
 * @param hello the whole message, with 32 zeros as its session id
 */
export function sealClaim(authKey: Uint8Array, random: Buffer, hello: Uint8Array, claim: SessionClaim): Buffer {
  const plaintext = Buffer.alloc(plaintextBytes);
  plaintext.set(claim.version, 0);
  plaintext.writeUInt32BE(claim.seconds, 4);
  plaintext.set(claim.shortId, 8);
  const cipher = createCipheriv('aes-256-gcm', authKey, random.subarray(saltBytes, randomBytes));
  cipher.setAAD(hello);
  const sealed = cipher.update(plaintext);
  cipher.final();
  return Buffer.concat([sealed, cipher.getAuthTag()]);
}

/**
 * The claim in the session id of a ClientHello; undefined unless it was sealed under the key for exactly this message.
 * @param hello the whole message as received, with the session id at `sessionIdAt`
 */
export function openClaim(
  authKey: Uint8Array,
  hello: { readonly bytes: Buffer; readonly random: Buffer; readonly sessionId: Buffer; readonly sessionIdAt: number },
): SessionClaim | undefined {
  if (hello.sessionId.length !== sessionIdBytes) return undefined;
  const associated = Buffer.from(hello.bytes);
  associated.fill(0, hello.sessionIdAt, hello.sessionIdAt + sessionIdBytes);
  const decipher = createDecipheriv('aes-256-gcm', authKey, hello.random.subarray(saltBytes, randomBytes));
  decipher.setAAD(associated);
  decipher.setAuthTag(hello.sessionId.subarray(plaintextBytes));
  const plaintext = decipher.update(hello.sessionId.subarray(0, plaintextBytes));
  try {
    decipher.final();
  } catch {
    return undefined;
  }
  return {
    version: [plaintext.readUInt8(0), plaintext.readUInt8(1), plaintext.readUInt8(2)],
    seconds: plaintext.readUInt32BE(4),
    shortId: plaintext.subarray(8),
  };
}

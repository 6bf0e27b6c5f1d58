/**
 * The primitives from node:crypto, for platforms where no addon loads and for the single-file agent. Callers pass raw
 * bytes, which become key objects here. Private keys are imported as PKCS #8, which names no public key: Node 24 compares
 * the two halves of a JWK.
 */
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  type KeyObject,
} from 'node:crypto';
import { tagBytes, type Aead, type Primitives } from './primitives.js';

const okp = { kty: 'OKP', crv: 'X25519' } as const;
const base64url = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64url');
/** What precedes the key in PKCS #8 (RFC 8410, section 7). */
const pkcs8 = Buffer.from('302e020100300506032b656e04220420', 'hex');

const privateKeyOf = (bytes: Uint8Array): KeyObject =>
  createPrivateKey({ key: Buffer.concat([pkcs8, bytes]), format: 'der', type: 'pkcs8' });
/** Key objects of private keys by their bytes, which never change. Halves the time of an agreement. */
const known = new WeakMap<Uint8Array, KeyObject>();
const publicKeyOf = (bytes: Uint8Array): KeyObject =>
  createPublicKey({ key: { ...okp, x: base64url(bytes) }, format: 'jwk' });

/** The public key is the private key's agreement with the base point. In Node 20, an export can deadlock with GC. */
const basePoint = publicKeyOf(Uint8Array.from({ length: 32 }, (_, at) => (at === 0 ? 9 : 0)));

export const nodeCrypto: Primitives = {
  name: 'node:crypto',
  x25519Public(privateKey) {
    const keyObject = privateKeyOf(privateKey);
    known.set(privateKey, keyObject);
    return diffieHellman({ privateKey: keyObject, publicKey: basePoint });
  },
  x25519Agree(privateKey, publicKey) {
    const ours = known.get(privateKey) ?? privateKeyOf(privateKey);
    try {
      return diffieHellman({ privateKey: ours, publicKey: publicKeyOf(publicKey) });
    } catch {
      // OpenSSL refuses all-zero results.
      return undefined;
    }
  },
  chacha: aead((key, nonce) => [key, nonce]),
  // XChaCha20-Poly1305 is ChaCha20-Poly1305 with a subkey per nonce (draft-irtf-cfrg-xchacha-03, section 2.3).
  xchacha: aead((key, nonce) => [
    hchacha20(key, nonce.subarray(0, 16)),
    Buffer.concat([Buffer.alloc(4), nonce.subarray(16)]),
  ]),
  sha256(...parts) {
    const running = createHash('sha256');
    for (const part of parts) running.update(part);
    return running.digest();
  },
};

const algorithm = 'chacha20-poly1305';
const options = { authTagLength: tagBytes } as const;

/** @param keyed returns the key and the 12-byte nonce for ChaCha20-Poly1305 */
function aead(keyed: (key: Uint8Array, nonce: Uint8Array) => readonly [key: Uint8Array, nonce: Uint8Array]): Aead {
  return {
    seal(key, nonce, plaintext, associated) {
      const cipher = createCipheriv(algorithm, ...keyed(key, nonce), options);
      cipher.setAAD(associated, { plaintextLength: plaintext.length });
      const sealed = cipher.update(plaintext);
      cipher.final();
      return Buffer.concat([sealed, cipher.getAuthTag()]);
    },
    open(key, nonce, sealed, associated) {
      const end = sealed.length - tagBytes;
      const decipher = createDecipheriv(algorithm, ...keyed(key, nonce), options);
      decipher.setAAD(associated, { plaintextLength: end });
      decipher.setAuthTag(sealed.subarray(end));
      const plaintext = decipher.update(sealed.subarray(0, end));
      try {
        decipher.final();
      } catch {
        plaintext.fill(0);
        return undefined;
      }
      return plaintext;
    },
  };
}

/** The first words of ChaCha20's state: "expand 32-byte k". */
const constants = Buffer.from('expand 32-byte k', 'latin1');

/**
 * HChaCha20 (section 2.2 of the same draft): the first and last four words of the state after twenty rounds. ChaCha20
 * adds the initial state to them, which is subtracted again here.
 * @param nonce 16 bytes
 */
function hchacha20(key: Uint8Array, nonce: Uint8Array): Buffer {
  const block = createCipheriv('chacha20', key, nonce).update(Buffer.alloc(64));
  const derived = Buffer.alloc(32);
  const words = (at: number, from: number, added: Uint8Array): void => {
    const initial = Buffer.from(added);
    for (let word = 0; word < 16; word += 4)
      derived.writeUInt32LE((block.readUInt32LE(from + word) - initial.readUInt32LE(word)) >>> 0, at + word);
  };
  words(0, 0, constants);
  words(16, 48, nonce);
  block.fill(0);
  return derived;
}

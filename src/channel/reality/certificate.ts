/**
 * The temporary certificate of a REALITY server: an Ed25519 key of this process, with a MAC in place of the signature,
 * under the key that server and client share. So the client recognises the server, and nobody else can make such a
 * certificate. No authority knows it. Implements `docs/reality.md#the-certificate`.
 */
import {
  createHmac,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  sign,
  timingSafeEqual,
  verify,
  type KeyObject,
} from 'node:crypto';
import { subjectPublicKeyInfo } from '../tls/spki-pin.js';

const macBytes = 64;
const keyBytes = 32;
/** SubjectPublicKeyInfo of an Ed25519 key, before the key. */
const ed25519Spki = Buffer.from('302a300506032b6570032100', 'hex');

/** DER of a certificate with empty names and no extensions, in three pieces around public key and signature. */
const beforeKey = Buffer.from(
  '3081af' + // Certificate
    '3063' + // to be signed
    'a003020102' + // version 3
    '020101' + // serial number 1: RFC 5280 forbids 0
    '300506032b6570' + // Ed25519
    '3000' + // issuer
    `3022${`180f${Buffer.from('00010101000000Z', 'latin1').toString('hex')}`.repeat(2)}` + // validity: the year 1
    '3000' + // subject
    '302a300506032b6570032100', // public key
  'hex',
);
const beforeSignature = Buffer.from('300506032b6570034100', 'hex');

export interface TemporaryIdentity {
  /** The certificate, in DER, for the client that shares the key. */
  certificateFor(authKey: Uint8Array): Buffer;
  /** An Ed25519 signature. */
  sign(bytes: Uint8Array): Buffer;
}

/** One per process is enough: the MAC makes each connection's certificate unique. */
export function createTemporaryIdentity(): TemporaryIdentity {
  // Encoded during generation and never exported: in Node 20, an export can deadlock with garbage collection.
  const { privateKey, publicKey } = generateKeyPairSync('ed25519', {
    publicKeyEncoding: { format: 'der', type: 'spki' },
    privateKeyEncoding: { format: 'pem', type: 'pkcs8' },
  });
  const publicBytes = publicKey.subarray(-32);
  // Parsed once: parsing it for each signature would cost ten times what a signature does.
  const key = createPrivateKey(privateKey);
  return {
    certificateFor: (authKey) => Buffer.concat([beforeKey, publicBytes, beforeSignature, mac(authKey, publicBytes)]),
    sign: (bytes) => sign(null, bytes, key),
  };
}

function mac(authKey: Uint8Array, publicKey: Uint8Array): Buffer {
  return createHmac('sha512', authKey).update(publicKey).digest();
}

/** The key of a certificate made for the client that shares `authKey`; undefined for any other bytes. */
export function boundKeyOf(certificate: Buffer, authKey: Uint8Array): KeyObject | undefined {
  // Cut out of the DER: to parse the whole certificate would cost as much as the rest of the handshake's public keys.
  const spki = subjectPublicKeyInfo(certificate);
  if (spki?.length !== ed25519Spki.length + keyBytes || !ed25519Spki.equals(spki.subarray(0, -keyBytes)))
    return undefined;
  const signature = certificate.subarray(-macBytes);
  const expected = mac(authKey, spki.subarray(-keyBytes));
  if (signature.length !== macBytes || !timingSafeEqual(signature, expected)) return undefined;
  // As a JWK, because OpenSSL takes eight times as long to decode DER.
  const x = Buffer.from(spki.subarray(-keyBytes)).toString('base64url');
  return createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
}

/** Whether `signature` is this key's signature of the bytes. */
export function isSignedBy(key: KeyObject, bytes: Uint8Array, signature: Uint8Array): boolean {
  return verify(null, bytes, key, signature);
}

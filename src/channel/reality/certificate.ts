/**
 * The temporary certificate of a REALITY server: an Ed25519 key of this process, with a MAC in place of the signature,
 * under the key that server and client share. So the client recognises the server, and nobody else can make such a
 * certificate. No authority knows it. Implements `docs/reality.md#the-certificate`.
 */
import {
  X509Certificate,
  createHmac,
  createPrivateKey,
  generateKeyPairSync,
  sign,
  timingSafeEqual,
  verify,
} from 'node:crypto';
import type { KeyObject } from 'node:crypto';

const macBytes = 64;

/** DER of a certificate with empty names and no extensions, in three pieces around public key and signature. */
const beforeKey = Buffer.from(
  '3081af' + // Certificate
    '3063' + // to be signed
    'a003020102' + // version 3
    '020100' + // serial number 0
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
  const key = publicKeyOf(certificate);
  if (key?.asymmetricKeyType !== 'ed25519') return undefined;
  const publicBytes = key.export({ format: 'der', type: 'spki' }).subarray(-32);
  const signature = certificate.subarray(-macBytes);
  const expected = mac(authKey, publicBytes);
  return signature.length === macBytes && timingSafeEqual(signature, expected) ? key : undefined;
}

function publicKeyOf(certificate: Buffer): KeyObject | undefined {
  try {
    return new X509Certificate(certificate).publicKey;
  } catch {
    return undefined;
  }
}

/** Whether `signature` is this key's signature of the bytes. */
export function isSignedBy(key: KeyObject, bytes: Uint8Array, signature: Uint8Array): boolean {
  return verify(null, bytes, key, signature);
}

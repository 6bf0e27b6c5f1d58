/**
 * The key exchanges that REALITY supports, on both sides: X25519, and X25519MLKEM768, which resists quantum computers
 * (draft-ietf-tls-ecdhe-mlkem). Keys live for one handshake.
 */
import { ml_kem768 } from '@noble/post-quantum/ml-kem.js';
import { agreeX25519, generateX25519, type X25519KeyPair } from '../../kernel/crypto/crypto.js';
import type { ClientHello } from './client-hello.js';
import { group } from './codes.js';
import type { ServerHello } from './server-hello.js';

const x25519Bytes = 32;

export interface Agreed {
  /** The share to send to the other side. */
  readonly share: Buffer;
  readonly secret: Uint8Array;
}

/**
 * The server's half. Undefined if the client has no share of the group, or an invalid one.
 * @param agreed the group that the target chose
 */
export function answerShare(agreed: ServerHello['group'], hello: ClientHello): Agreed | undefined {
  const own = generateX25519();
  switch (agreed) {
    case group.x25519: {
      const secret = hello.x25519 && agreeX25519(own.privateKey, hello.x25519);
      return secret && { share: Buffer.from(own.publicKey), secret };
    }
    case group.x25519MlKem768: {
      if (hello.hybrid === undefined) return undefined;
      const encapsulated = encapsulate(hello.hybrid.subarray(0, -x25519Bytes));
      const secret = agreeX25519(own.privateKey, hello.hybrid.subarray(-x25519Bytes));
      if (encapsulated === undefined || secret === undefined) return undefined;
      return {
        share: Buffer.concat([encapsulated.cipherText, own.publicKey]),
        secret: Buffer.concat([encapsulated.sharedSecret, secret]),
      };
    }
    default:
      return agreed satisfies never;
  }
}

/** Undefined for an invalid key. */
function encapsulate(key: Uint8Array): { cipherText: Uint8Array; sharedSecret: Uint8Array } | undefined {
  try {
    return ml_kem768.encapsulate(key);
  } catch {
    return undefined;
  }
}

/** A client's keys for one handshake. */
export interface ClientShares {
  /** The pair of the X25519 share; the session id is sealed under it as well. */
  readonly x25519: X25519KeyPair;
  /** The share of X25519MLKEM768. */
  readonly hybrid: Buffer;
  /** The secret agreed on in a ServerHello; undefined if its share is invalid. */
  finish(hello: Pick<ServerHello, 'group' | 'share'>): Uint8Array | undefined;
}

export function createClientShares(): ClientShares {
  const x25519 = generateX25519();
  const hybridX25519 = generateX25519();
  const kem = ml_kem768.keygen();
  return {
    x25519,
    hybrid: Buffer.concat([kem.publicKey, hybridX25519.publicKey]),
    finish(hello) {
      switch (hello.group) {
        case group.x25519:
          return agreeX25519(x25519.privateKey, hello.share);
        case group.x25519MlKem768: {
          const secret = agreeX25519(hybridX25519.privateKey, hello.share.subarray(-x25519Bytes));
          const decapsulated = ml_kem768.decapsulate(hello.share.subarray(0, -x25519Bytes), kem.secretKey);
          return secret && Buffer.concat([decapsulated, secret]);
        }
        default:
          return hello.group satisfies never;
      }
    },
  };
}

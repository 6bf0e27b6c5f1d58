/**
 * The master key as a capability: it wraps and unwraps data keys and proves which key it is; its bytes stay inside,
 * so that no log, error or dump of an object can show them. Where it comes from is `master-key-source.ts`.
 * Implements `docs/contract/domain.md`, "Secrets in events" (a wrong master key is refused at start).
 */
import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';
import { err, ok } from '../kernel/result.js';
import type { Result } from '../kernel/result.js';
import { openXChaCha, sealXChaCha, xchachaNonceBytes } from './xchacha.js';

export const masterKeyBytes = 32;
const salt = 'svc-master-v1';

export interface WrappedBytes {
  readonly nonce: Uint8Array;
  readonly ciphertext: Uint8Array;
}

export interface MasterKey {
  /** Tells master keys apart; reveals nothing of the key. Safe to log and store. */
  readonly keyId: string;
  wrap(plaintext: Uint8Array, associated: Uint8Array): WrappedBytes;
  /** Undefined when this is not the key, or anything was altered. */
  unwrap(wrapped: WrappedBytes, associated: Uint8Array): Uint8Array | undefined;
  /** What to store so that the next start can tell whether it has the same key. Not a secret. */
  checkValue(): MasterKeyCheck;
}

/** JSON-safe; kept by the stores beside what the key protects. */
export interface MasterKeyCheck {
  readonly key_id: string;
  readonly proof: string;
}

/**
 * Takes 32 bytes over and overwrites them.
 * @throws RangeError on another length.
 */
export function createMasterKey(bytes: Uint8Array): MasterKey {
  if (bytes.length !== masterKeyBytes) throw new RangeError(`master key: expected 32 bytes, got ${bytes.length}`);
  const derive = (info: string): Uint8Array => new Uint8Array(hkdfSync('sha256', bytes, salt, info, 32));
  const wrapKey = derive('wrap');
  const proof = createHmac('sha256', derive('check')).update('master key check').digest('base64url');
  const keyId = `mk_${Buffer.from(derive('id').subarray(0, 9)).toString('base64url')}`;
  bytes.fill(0);
  return {
    keyId,
    wrap(plaintext, associated) {
      const nonce = randomBytes(xchachaNonceBytes);
      return { nonce, ciphertext: sealXChaCha(wrapKey, nonce, plaintext, associated) };
    },
    unwrap(wrapped, associated) {
      if (wrapped.nonce.length !== xchachaNonceBytes) return undefined;
      return openXChaCha(wrapKey, wrapped.nonce, wrapped.ciphertext, associated);
    },
    checkValue: () => ({ key_id: keyId, proof }),
  };
}

/** Compares the key in hand with the stored check value; the error is the sentence that the start is refused with. */
export function verifyMasterKey(masterKey: MasterKey, stored: MasterKeyCheck): Result<true, string> {
  const expected = Buffer.from(stored.proof, 'base64url');
  const actual = Buffer.from(masterKey.checkValue().proof, 'base64url');
  if (expected.length === actual.length && timingSafeEqual(expected, actual)) return ok(true);
  return err(
    `wrong master key: the data was sealed with ${stored.key_id}, the key given is ${masterKey.keyId}; ` +
      'set SVC_MASTER_KEY or SVC_MASTER_KEY_FILE to the key that this data belongs to',
  );
}

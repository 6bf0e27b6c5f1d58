/**
 * The master key as a capability: it wraps and unwraps the keyring, and the key of the log chain follows from it. Its bytes
 * stay inside, so no log, error or object dump can show them. Where it comes from is `master-key-source.ts`. Implements
 * `docs/contract/domain.md#commands-and-events`.
 */
import { hkdfSync, randomBytes } from 'node:crypto';
import { xchacha, xchachaNonceBytes } from '../kernel/crypto/crypto.js';

export const masterKeyBytes = 32;
const salt = 'svc-master-v1';

export interface WrappedBytes {
  readonly nonce: Uint8Array;
  readonly ciphertext: Uint8Array;
}

export interface MasterKey {
  /** Identifies the key without revealing anything of it; safe to log and store. */
  readonly keyId: string;
  wrap(plaintext: Uint8Array, associated: Uint8Array): WrappedBytes;
  /** @returns undefined when another key wrapped the bytes, or anything was altered */
  unwrap(wrapped: WrappedBytes, associated: Uint8Array): Uint8Array | undefined;
  /** A copy of the 32 secret bytes that the log chain is made with; the caller overwrites it. */
  logChainKey(): Uint8Array;
}

/**
 * Takes over 32 bytes and overwrites them.
 * @throws RangeError on another length.
 */
export function createMasterKey(bytes: Uint8Array): MasterKey {
  if (bytes.length !== masterKeyBytes) throw new RangeError(`master key: expected 32 bytes, got ${bytes.length}`);
  const derive = (info: string): Uint8Array => new Uint8Array(hkdfSync('sha256', bytes, salt, info, 32));
  const wrapKey = derive('wrap');
  const logChainKey = derive('log chain');
  const keyId = `mk_${Buffer.from(derive('id').subarray(0, 9)).toString('base64url')}`;
  bytes.fill(0);
  return {
    keyId,
    wrap(plaintext, associated) {
      const nonce = randomBytes(xchachaNonceBytes);
      return { nonce, ciphertext: xchacha.seal(wrapKey, nonce, plaintext, associated) };
    },
    unwrap(wrapped, associated) {
      if (wrapped.nonce.length !== xchachaNonceBytes) return undefined;
      return xchacha.open(wrapKey, wrapped.nonce, wrapped.ciphertext, associated);
    },
    logChainKey: () => Uint8Array.from(logChainKey),
  };
}

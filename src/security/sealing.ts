/**
 * The form of sealed values; seals and opens with a given key. `keyring.ts` chooses the key. Pure except for the random
 * nonce. Implements `docs/contract/domain.md#commands-and-events`, secrets.
 */
import { randomBytes } from 'node:crypto';
import { xchacha, xchachaNonceBytes } from '../kernel/crypto/crypto.js';

/** The place that a sealed value is bound to; it opens nowhere else. */
export interface SealContext {
  readonly installationId: string;
  readonly stream: string;
  readonly resourceId: string;
  readonly field: string;
}

/**
 * As stored in an event: base64url without padding. A type, not an interface, so that it is assignable to JsonObject.
 */
export type SealedValue = {
  readonly alg: 'xc20p';
  readonly key_id: string;
  readonly nonce: string;
  readonly ct: string;
};

export type OpenResult =
  | { readonly kind: 'opened'; readonly plaintext: Uint8Array }
  | { readonly kind: 'refused'; readonly reason: OpenRefusal };

export type OpenRefusal =
  /** Altered, or moved to another installation, stream, resource or field. */
  | 'tampered'
  | 'malformed'
  /** Sealed by a key that is not in the keyring. */
  | 'unknown_key';

const base64url = /^[A-Za-z0-9_-]*$/;
const byteForm = 1;

/** True for any value of this form. Callers use it to mask secrets, among other things. */
export function isSealedValue(value: unknown): value is SealedValue {
  if (typeof value !== 'object' || value === null) return false;
  const { alg, key_id, nonce, ct } = value as Record<string, unknown>;
  return alg === 'xc20p' && typeof key_id === 'string' && isBase64url(nonce) && isBase64url(ct);
}

/** Seals with a fresh random nonce. */
export function sealWith(key: Uint8Array, keyId: string, plaintext: Uint8Array, context: SealContext): SealedValue {
  const nonce = randomBytes(xchachaNonceBytes);
  const ct = xchacha.seal(key, nonce, plaintext, associatedData(context));
  return { alg: 'xc20p', key_id: keyId, nonce: nonce.toString('base64url'), ct: Buffer.from(ct).toString('base64url') };
}

/** Opens a value that `sealWith` sealed with the same key for the same context. */
export function openWith(key: Uint8Array, sealed: SealedValue, context: SealContext): OpenResult {
  const nonce = Buffer.from(sealed.nonce, 'base64url');
  if (nonce.length !== xchachaNonceBytes) return { kind: 'refused', reason: 'malformed' };
  return opened(xchacha.open(key, nonce, Buffer.from(sealed.ct, 'base64url'), associatedData(context)));
}

/** Seals to bytes: 1 byte for the form, 1 byte for the length of the key id, the key id, the nonce, the ciphertext. */
export function sealBytesWith(key: Uint8Array, keyId: string, plaintext: Uint8Array, context: SealContext): Uint8Array {
  const id = Buffer.from(keyId, 'utf8');
  if (id.length === 0 || id.length > 255) throw new RangeError(`key id: expected 1..255 bytes, got ${id.length}`);
  const nonce = randomBytes(xchachaNonceBytes);
  const ciphertext = xchacha.seal(key, nonce, plaintext, associatedData(context));
  return Buffer.concat([Buffer.of(byteForm, id.length), id, nonce, ciphertext]);
}

/** The key id in sealed bytes, or undefined when they are malformed. */
export function keyIdOfBytes(sealed: Uint8Array): string | undefined {
  const length = sealed[1] ?? 0;
  if (sealed[0] !== byteForm || length === 0 || sealed.length < 2 + length + xchachaNonceBytes) return undefined;
  return Buffer.from(sealed.buffer, sealed.byteOffset + 2, length).toString('utf8');
}

/** Opens bytes that `sealBytesWith` sealed with the same key for the same context. */
export function openBytesWith(key: Uint8Array, sealed: Uint8Array, context: SealContext): OpenResult {
  const start = 2 + (sealed[1] ?? 0);
  const body = start + xchachaNonceBytes;
  if (keyIdOfBytes(sealed) === undefined) return { kind: 'refused', reason: 'malformed' };
  return opened(xchacha.open(key, sealed.subarray(start, body), sealed.subarray(body), associatedData(context)));
}

function opened(plaintext: Uint8Array | undefined): OpenResult {
  return plaintext === undefined ? { kind: 'refused', reason: 'tampered' } : { kind: 'opened', plaintext };
}

function isBase64url(value: unknown): value is string {
  return typeof value === 'string' && base64url.test(value);
}

function associatedData(context: SealContext): Uint8Array {
  return lengthPrefixed(['svc-sealed-v1', context.installationId, context.stream, context.resourceId, context.field]);
}

/** Each part prefixed with its length, so that no two lists of parts share an encoding. */
export function lengthPrefixed(parts: readonly string[]): Uint8Array {
  const lengths = parts.map((part) => Buffer.byteLength(part));
  const all = Buffer.allocUnsafe(lengths.reduce((sum, length) => sum + 4 + length, 0));
  let offset = 0;
  for (const [index, part] of parts.entries()) {
    offset = all.writeUInt32BE(lengths[index] ?? 0, offset);
    offset += all.write(part, offset);
  }
  return all;
}

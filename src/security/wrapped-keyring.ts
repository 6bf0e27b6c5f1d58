/**
 * A keyring as the log holds it: all keys in one ciphertext, wrapped by the master key and bound to the installation and
 * the version. Makes new keyrings and versions of them; neither reads nor writes the log (`src/start/keyring.ts`).
 * Implements `docs/contract/domain.md#commands-and-events`, secrets.
 */
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { canonicalJson } from '../kernel/json.js';
import type { KeyringContent, SealingKey } from './keyring.js';
import type { MasterKey } from './master-key.js';
import { lengthPrefixed } from './sealing.js';
import { aeadKeyBytes } from '../kernel/crypto/crypto.js';

/** Binary parts are base64url. */
export type WrappedKeyring = {
  readonly installation_id: string;
  readonly version: number;
  readonly master_key_id: string;
  readonly nonce: string;
  readonly ct: string;
};

/** Id and key of each sealing key, base64url, the oldest first. */
type Plain = { readonly sealing: readonly (readonly [id: string, key: string])[] };

const keyIdBytes = 9;
const newKey = (): SealingKey => ({
  id: `sk_${randomBytes(keyIdBytes).toString('base64url')}`,
  key: randomBytes(aeadKeyBytes),
});

/** The first keyring of a new installation. */
export function newKeyring(): KeyringContent {
  return { installationId: randomUUID(), version: 1, sealing: [newKey()] };
}

/** The next version with one more key, which seals from then on. */
export function withNewKey({ installationId, version, sealing }: KeyringContent): KeyringContent {
  return { installationId, version: version + 1, sealing: [...sealing, newKey()] };
}

/** The next version with the same keys, to be wrapped by another master key. */
export function nextVersion(content: KeyringContent): KeyringContent {
  return { ...content, version: content.version + 1 };
}

export function wrapKeyring(
  masterKey: MasterKey,
  { installationId, version, sealing }: KeyringContent,
): WrappedKeyring {
  const plain: Plain = { sealing: sealing.map(({ id, key }) => [id, Buffer.from(key).toString('base64url')]) };
  const { nonce, ciphertext } = masterKey.wrap(Buffer.from(JSON.stringify(plain)), binding(installationId, version));
  return {
    installation_id: installationId,
    version,
    master_key_id: masterKey.keyId,
    nonce: Buffer.from(nonce).toString('base64url'),
    ct: Buffer.from(ciphertext).toString('base64url'),
  };
}

/** @returns undefined when another master key has wrapped it, or anything was altered */
export function unwrapKeyring(masterKey: MasterKey, wrapped: WrappedKeyring): KeyringContent | undefined {
  const { installation_id: installationId, version, nonce, ct } = wrapped;
  const bytes = masterKey.unwrap(
    { nonce: Buffer.from(nonce, 'base64url'), ciphertext: Buffer.from(ct, 'base64url') },
    binding(installationId, version),
  );
  if (bytes === undefined) return undefined;
  const plain = JSON.parse(Buffer.from(bytes).toString('utf8')) as Plain;
  bytes.fill(0);
  const sealing = plain.sealing.map(([id, key]) => ({ id, key: Buffer.from(key, 'base64url') }));
  return { installationId, version, sealing };
}

/** SHA-256 of a wrapped keyring, lower-case hex: `svc-service` records it beside the version. */
export function digestOf(wrapped: WrappedKeyring): string {
  const { installation_id, version, master_key_id, nonce, ct } = wrapped;
  return createHash('sha256')
    .update(canonicalJson([installation_id, version, master_key_id, nonce, ct]))
    .digest('hex');
}

/** Moved to another installation or version, a keyring does not unwrap. */
function binding(installationId: string, version: number): Uint8Array {
  return lengthPrefixed(['svc-keyring-v1', installationId, String(version)]);
}

/**
 * The keyring of an installation: it seals values with its newest key, and opens them with any key it holds. The log
 * stores it as one ciphertext, wrapped with the master key; `src/app/installation/keyring.ts` reads and writes it.
 * Implements `docs/contract/domain.md#commands-and-events`, secrets.
 */
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { aeadKeyBytes } from '../kernel/crypto/crypto.js';
import { canonicalJson } from '../kernel/json.js';
import type { MasterKey } from './master-key.js';
import {
  isSealedValue,
  keyIdOfBytes,
  lengthPrefixed,
  openBytesWith,
  openWith,
  sealBytesWith,
  sealWith,
  type OpenResult,
  type SealContext,
  type SealedValue,
} from './sealing.js';

/** A key that seals values. */
export interface SealingKey {
  readonly id: string;
  /** 32 bytes. */
  readonly key: Uint8Array;
}

/** The keys of one installation. */
export interface KeyringContent {
  /** UUID. */
  readonly installationId: string;
  /** Starts at 1 and grows by one with each change. */
  readonly version: number;
  /** Oldest first, at least one. */
  readonly sealing: readonly SealingKey[];
  /** The MAC key of the log chains, 32 bytes: the same in every version (`log-chain/log-chain.ts`). */
  readonly logChain: Uint8Array;
}

/** The place that a sealed value of this installation is bound to. */
export type Place = Omit<SealContext, 'installationId'>;

export interface Keyring {
  readonly installationId: string;
  seal(plaintext: Uint8Array, place: Place): SealedValue;
  open(sealed: SealedValue, place: Place): OpenResult;
  /** Like `seal`, for larger byte strings such as stored snapshots. */
  sealBytes(plaintext: Uint8Array, place: Place): Uint8Array;
  openBytes(sealed: Uint8Array, place: Place): OpenResult;
  /** Overwrites the keys; nothing is sealed or opened afterwards. */
  close(): void;
}

/**
 * Holds the keys in memory and seals and opens with them.
 * @throws RangeError for a keyring without keys
 */
export function createKeyring({ installationId, sealing }: KeyringContent): Keyring {
  const newest = sealing.at(-1);
  if (newest === undefined) throw new RangeError('a keyring has at least one key');
  const keys = new Map(sealing.map(({ id, key }) => [id, key]));
  const at = (place: Place): SealContext => ({ installationId, ...place });
  const opened = (keyId: string | undefined, open: (key: Uint8Array) => OpenResult): OpenResult => {
    if (keyId === undefined) return { kind: 'refused', reason: 'malformed' };
    const key = keys.get(keyId);
    return key === undefined ? { kind: 'refused', reason: 'unknown_key' } : open(key);
  };
  return {
    installationId,
    seal: (plaintext, place) => sealWith(newest.key, newest.id, plaintext, at(place)),
    open: (sealed, place) =>
      opened(isSealedValue(sealed) ? sealed.key_id : undefined, (key) => openWith(key, sealed, at(place))),
    sealBytes: (plaintext, place) => sealBytesWith(newest.key, newest.id, plaintext, at(place)),
    openBytes: (sealed, place) => opened(keyIdOfBytes(sealed), (key) => openBytesWith(key, sealed, at(place))),
    close() {
      for (const { key } of sealing) key.fill(0);
      keys.clear();
    },
  };
}

/** A keyring as the log stores it; binary parts are base64url. */
export type WrappedKeyring = {
  readonly installation_id: string;
  readonly version: number;
  readonly master_key_id: string;
  readonly nonce: string;
  readonly ct: string;
};

/** Keys in base64url. */
type Plain = {
  /** Oldest first. */
  readonly sealing: readonly (readonly [id: string, key: string])[];
  readonly log_chain: string;
};

const keyIdBytes = 9;
const logChainKeyBytes = 32;
const newKey = (): SealingKey => ({
  id: `sk_${randomBytes(keyIdBytes).toString('base64url')}`,
  key: randomBytes(aeadKeyBytes),
});

/** The first keyring of a new installation. */
export function newKeyring(): KeyringContent {
  return { installationId: randomUUID(), version: 1, sealing: [newKey()], logChain: randomBytes(logChainKeyBytes) };
}

/** The next version, with one more key, which seals from then on. */
export function withNewKey(content: KeyringContent): KeyringContent {
  return { ...nextVersion(content), sealing: [...content.sealing, newKey()] };
}

/** The next version with the same keys, for a new master key to wrap. */
export function nextVersion(content: KeyringContent): KeyringContent {
  return { ...content, version: content.version + 1 };
}

/** Wraps a keyring for the log. */
export function wrapKeyring(
  masterKey: MasterKey,
  { installationId, version, sealing, logChain }: KeyringContent,
): WrappedKeyring {
  const plain: Plain = {
    sealing: sealing.map(({ id, key }) => [id, Buffer.from(key).toString('base64url')]),
    log_chain: Buffer.from(logChain).toString('base64url'),
  };
  const { nonce, ciphertext } = masterKey.wrap(Buffer.from(JSON.stringify(plain)), binding(installationId, version));
  return {
    installation_id: installationId,
    version,
    master_key_id: masterKey.keyId,
    nonce: Buffer.from(nonce).toString('base64url'),
    ct: Buffer.from(ciphertext).toString('base64url'),
  };
}

/** @returns undefined when it was wrapped with another master key, or altered */
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
  return { installationId, version, sealing, logChain: Buffer.from(plain.log_chain, 'base64url') };
}

/** SHA-256 of a wrapped keyring, lower-case hex: `svc-service` records it beside the version. */
export function digestOf(wrapped: WrappedKeyring): string {
  const { installation_id, version, master_key_id, nonce, ct } = wrapped;
  return createHash('sha256')
    .update(canonicalJson([installation_id, version, master_key_id, nonce, ct]))
    .digest('hex');
}

/**
 * Why a keyring of the log is not the installation's newest; undefined if it is.
 * @param recorded what `svc-service` has recorded last, which a rotation does after it has stored the keyring
 */
export function outdatedText(
  wrapped: WrappedKeyring,
  recorded: { readonly version: number; readonly digest: string } | undefined,
): string | undefined {
  if (recorded === undefined || recorded.version < wrapped.version) return undefined;
  if (recorded.version === wrapped.version && recorded.digest === digestOf(wrapped)) return undefined;
  return (
    `the keyring in the event log is version ${wrapped.version}, and the installation has recorded version ` +
    `${recorded.version} with different content: the log was altered, or assembled from two backups`
  );
}

/** A keyring moved to another installation or version does not unwrap. */
function binding(installationId: string, version: number): Uint8Array {
  return lengthPrefixed(['svc-keyring-v1', installationId, String(version)]);
}

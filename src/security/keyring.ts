/**
 * Seals and opens values with the keys of an installation: the newest key seals, and every key opens what it has sealed.
 * Holds the keys in memory; where they are kept, wrapped by the master key, is in `wrapped-keyring.ts`.
 * Implements `docs/contract/domain.md#commands-and-events`, secrets.
 */
import { isSealedValue, keyIdOfBytes, openBytesWith, openWith, sealBytesWith, sealWith } from './sealing.js';
import type { OpenResult, SealContext, SealedValue } from './sealing.js';

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
  /** Grows by one with each change, from 1. */
  readonly version: number;
  /** The oldest first, at least one. */
  readonly sealing: readonly SealingKey[];
}

/** The place that a sealed value of this installation belongs to. */
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

/** @throws RangeError for a keyring without keys */
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

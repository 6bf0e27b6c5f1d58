/**
 * Seals and opens values with the data keys of resources: creates and unwraps keys, keeps a bounded number in memory,
 * and shreds them. Not a store: wrapped keys go through the `DataKeyStore` port. Deleting a data key shreds everything
 * that was sealed with it. Implements `docs/contract/domain.md#commands-and-events`.
 */
import { createLru } from '../kernel/lru.js';
import { newDataKey, newKeyId, unwrapDataKey, wrapDataKey } from './data-keys.js';
import type { DataKeyStore } from './data-keys.js';
import type { MasterKey } from './master-key.js';
import { isSealedValue, keyIdOfBytes, openBytesWith, openWith, sealBytesWith, sealWith } from './sealing.js';
import type { OpenResult, SealContext, SealedValue } from './sealing.js';

/** Unwrapped data keys held in memory. */
const cachedKeys = 65_536;

export type SyncOpenResult = OpenResult | { readonly kind: 'not_cached' };

export interface Keyring {
  /** Creates, wraps and durably stores a new data key for a resource. @returns its id */
  createKey(resourceId: string): Promise<string>;
  /**
   * Seals under the key `keyId`, or under a new one when it is absent or shredded; the value names the key used.
   * Rejects when the key belongs to another resource or the master key is the wrong one.
   */
  seal(plaintext: Uint8Array, context: SealContext, keyId?: string): Promise<SealedValue>;
  open(sealed: SealedValue, context: SealContext): Promise<OpenResult>;
  /** Like `open`, for hot paths: answers `not_cached` instead of reading the store. */
  openSync(sealed: SealedValue, context: SealContext): SyncOpenResult;
  /** Like `seal`, for larger byte strings such as stored snapshots. */
  sealBytes(plaintext: Uint8Array, context: SealContext, keyId?: string): Promise<Uint8Array>;
  openBytes(sealed: Uint8Array, context: SealContext): Promise<OpenResult>;
  /** Deletes the data key for good, from memory and from the store. */
  shred(keyId: string): Promise<void>;
  /** Drops every key from memory. */
  close(): void;
}

export interface KeyringOptions {
  readonly masterKey: MasterKey;
  readonly store: DataKeyStore;
  /** Unwrapped keys held at most. */
  readonly maxCachedKeys?: number;
}

interface DataKey {
  readonly bytes: Uint8Array;
  readonly resourceId: string;
}

type Lookup = { readonly kind: 'found'; readonly key: DataKey } | Exclude<OpenResult, { readonly kind: 'opened' }>;

const malformed: OpenResult = { kind: 'refused', reason: 'malformed' };

export function createKeyring(options: KeyringOptions): Keyring {
  const { masterKey, store } = options;
  const cache = createLru<string, DataKey>({ maxEntries: options.maxCachedKeys ?? cachedKeys });
  // Counts drops: a lookup that began before a shred must not cache the key again.
  let drops = 0;

  const findKey = async (keyId: string): Promise<Lookup> => {
    const cached = cache.get(keyId);
    if (cached !== undefined) return { kind: 'found', key: cached };
    const dropsBefore = drops;
    const wrapped = await store.get(keyId);
    if (wrapped === undefined) return { kind: 'shredded' };
    const bytes = unwrapDataKey(masterKey, keyId, wrapped);
    if (bytes === undefined) return { kind: 'refused', reason: 'wrong_master_key' };
    const key = { bytes, resourceId: wrapped.resource_id };
    if (drops === dropsBefore) cache.set(keyId, key);
    return { kind: 'found', key };
  };

  const create = async (resourceId: string): Promise<{ readonly keyId: string; readonly key: DataKey }> => {
    const keyId = newKeyId();
    const key = { bytes: newDataKey(), resourceId };
    await store.put(keyId, wrapDataKey(masterKey, keyId, resourceId, key.bytes));
    cache.set(keyId, key);
    return { keyId, key };
  };

  const keyForSealing = async (
    resourceId: string,
    keyId: string | undefined,
  ): Promise<{ readonly keyId: string; readonly key: DataKey }> => {
    if (keyId === undefined) return create(resourceId);
    const lookup = await findKey(keyId);
    switch (lookup.kind) {
      case 'shredded':
        return create(resourceId);
      case 'refused':
        throw new Error(`data key ${keyId} cannot be unwrapped: ${lookup.reason}`);
      case 'found':
        if (lookup.key.resourceId !== resourceId) throw new Error(`data key ${keyId} belongs to another resource`);
        return { keyId, key: lookup.key };
    }
  };

  const drop = (keyId: string): void => {
    drops += 1;
    cache.delete(keyId);
  };

  return {
    async createKey(resourceId) {
      return (await create(resourceId)).keyId;
    },
    async seal(plaintext, context, keyId) {
      const sealing = await keyForSealing(context.resourceId, keyId);
      return sealWith(sealing.key.bytes, sealing.keyId, plaintext, context);
    },
    async open(sealed, context) {
      if (!isSealedValue(sealed)) return malformed;
      const lookup = await findKey(sealed.key_id);
      return lookup.kind === 'found' ? openWith(lookup.key.bytes, sealed, context) : lookup;
    },
    openSync(sealed, context) {
      if (!isSealedValue(sealed)) return malformed;
      const key = cache.get(sealed.key_id);
      return key === undefined ? { kind: 'not_cached' } : openWith(key.bytes, sealed, context);
    },
    async sealBytes(plaintext, context, keyId) {
      const sealing = await keyForSealing(context.resourceId, keyId);
      return sealBytesWith(sealing.key.bytes, sealing.keyId, plaintext, context);
    },
    async openBytes(sealed, context) {
      const keyId = keyIdOfBytes(sealed);
      if (keyId === undefined) return malformed;
      const lookup = await findKey(keyId);
      return lookup.kind === 'found' ? openBytesWith(lookup.key.bytes, sealed, context) : lookup;
    },
    async shred(keyId) {
      drop(keyId);
      await store.delete(keyId);
      // A lookup may have begun before the store deleted the key.
      drop(keyId);
    },
    close() {
      drops += 1;
      cache.clear();
    },
  };
}

/**
 * Data keys: one or more per resource, each wrapped by the master key and bound to its id and its resource. Declares
 * the port to the store of wrapped keys, not an adapter. Implements `docs/contract/domain.md#commands-and-events`.
 */
import { randomBytes } from 'node:crypto';
import { err, ok } from '../kernel/result.js';
import type { Result } from '../kernel/result.js';
import type { MasterKey } from './master-key.js';
import { lengthPrefixed } from './sealing.js';
import { xchachaKeyBytes } from './xchacha.js';

/** JSON-safe, so that any store can hold it. Binary parts are base64url. */
export type WrappedKey = {
  readonly v: 1;
  readonly resource_id: string;
  readonly master_key_id: string;
  readonly nonce: string;
  readonly ct: string;
};

/**
 * The store of wrapped data keys. `put` and `delete` are durable when they resolve. A deleted key must not come back
 * from a replica or a backup that the service reads, because deleting it is how a secret is shredded.
 */
export interface DataKeyStore {
  get(keyId: string): Promise<WrappedKey | undefined>;
  put(keyId: string, wrapped: WrappedKey): Promise<void>;
  delete(keyId: string): Promise<void>;
  /** Every key id, to wrap all keys under another master key. */
  list(): AsyncIterable<string>;
}

/** A new random data key id. */
export function newKeyId(): string {
  return `dk_${randomBytes(16).toString('base64url')}`;
}

/** 32 fresh random bytes. */
export function newDataKey(): Uint8Array {
  return randomBytes(xchachaKeyBytes);
}

export function wrapDataKey(masterKey: MasterKey, keyId: string, resourceId: string, dataKey: Uint8Array): WrappedKey {
  const wrapped = masterKey.wrap(dataKey, binding(keyId, resourceId));
  return {
    v: 1,
    resource_id: resourceId,
    master_key_id: masterKey.keyId,
    nonce: Buffer.from(wrapped.nonce).toString('base64url'),
    ct: Buffer.from(wrapped.ciphertext).toString('base64url'),
  };
}

/** @returns undefined when the key was wrapped by another master key or anything was altered */
export function unwrapDataKey(masterKey: MasterKey, keyId: string, wrapped: WrappedKey): Uint8Array | undefined {
  const dataKey = masterKey.unwrap(
    { nonce: Buffer.from(wrapped.nonce, 'base64url'), ciphertext: Buffer.from(wrapped.ct, 'base64url') },
    binding(keyId, wrapped.resource_id),
  );
  return dataKey?.length === xchachaKeyBytes ? dataKey : undefined;
}

/**
 * Wraps every stored data key under another master key. Leaves keys that are already wrapped by `to`, so running it
 * again finishes an interrupted rotation. Stops at the first key that neither master key unwraps.
 */
export async function rewrapDataKeys(
  store: DataKeyStore,
  from: MasterKey,
  to: MasterKey,
): Promise<Result<{ readonly rewrapped: number; readonly kept: number }, string>> {
  let rewrapped = 0;
  let kept = 0;
  for await (const keyId of store.list()) {
    const wrapped = await store.get(keyId);
    if (wrapped === undefined) continue;
    if (wrapped.master_key_id === to.keyId && unwrapDataKey(to, keyId, wrapped) !== undefined) {
      kept += 1;
      continue;
    }
    const dataKey = unwrapDataKey(from, keyId, wrapped);
    if (dataKey === undefined)
      return err(`data key ${keyId} is wrapped by ${wrapped.master_key_id}, not ${from.keyId}`);
    await store.put(keyId, wrapDataKey(to, keyId, wrapped.resource_id, dataKey));
    dataKey.fill(0);
    rewrapped += 1;
  }
  return ok({ rewrapped, kept });
}

/** Binds a wrapped key to its id and resource: moved elsewhere, it does not unwrap. */
function binding(keyId: string, resourceId: string): Uint8Array {
  return lengthPrefixed(['svc-data-key-v1', keyId, resourceId]);
}

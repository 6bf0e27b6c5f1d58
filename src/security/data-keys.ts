/**
 * Data keys: one or more per resource, each wrapped by the master key and bound to its id and its resource. Declares
 * the port to the store of wrapped keys, not an adapter. Implements `docs/contract/domain.md#commands-and-events`.
 */
import { randomBytes } from 'node:crypto';
import { randomIds } from '../kernel/ids.js';
import type { MasterKey } from './master-key.js';
import { lengthPrefixed } from './sealing.js';
import { xchachaKeyBytes } from './xchacha.js';

/** A data key wrapped by one master key. Binary parts are base64url. */
type Wrap = {
  readonly master_key_id: string;
  readonly nonce: string;
  readonly ct: string;
};

/** JSON-safe, so that any store can hold it. */
export type WrappedKey = Wrap & {
  readonly v: 1;
  readonly resource_id: string;
  /** While the master key is being replaced: the same data key, wrapped by the next one as well. */
  readonly next?: Wrap;
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

/** A new data key id. It begins with the time, so that the keys of nodes that are made together are stored together. */
export function newKeyId(): string {
  return `dk_${Buffer.from(randomIds.next().replaceAll('-', ''), 'hex').toString('base64url')}`;
}

/** 32 fresh random bytes. */
export function newDataKey(): Uint8Array {
  return randomBytes(xchachaKeyBytes);
}

export function wrapDataKey(masterKey: MasterKey, keyId: string, resourceId: string, dataKey: Uint8Array): WrappedKey {
  return { v: 1, resource_id: resourceId, ...wrapOne(masterKey, keyId, resourceId, dataKey) };
}

function wrapOne(masterKey: MasterKey, keyId: string, resourceId: string, dataKey: Uint8Array): Wrap {
  const wrapped = masterKey.wrap(dataKey, binding(keyId, resourceId));
  return {
    master_key_id: masterKey.keyId,
    nonce: Buffer.from(wrapped.nonce).toString('base64url'),
    ct: Buffer.from(wrapped.ciphertext).toString('base64url'),
  };
}

/** @returns undefined when the key was wrapped by another master key or anything was altered */
export function unwrapDataKey(masterKey: MasterKey, keyId: string, wrapped: WrappedKey): Uint8Array | undefined {
  const { resource_id: resourceId, next } = wrapped;
  const dataKey = unwrapOne(masterKey, keyId, resourceId, wrapped);
  return dataKey ?? (next && unwrapOne(masterKey, keyId, resourceId, next));
}

function unwrapOne(masterKey: MasterKey, keyId: string, resourceId: string, wrap: Wrap): Uint8Array | undefined {
  const dataKey = masterKey.unwrap(
    { nonce: Buffer.from(wrap.nonce, 'base64url'), ciphertext: Buffer.from(wrap.ct, 'base64url') },
    binding(keyId, resourceId),
  );
  return dataKey?.length === xchachaKeyBytes ? dataKey : undefined;
}

/** Binds a wrapped key to its id and resource: moved elsewhere, it does not unwrap. */
function binding(keyId: string, resourceId: string): Uint8Array {
  return lengthPrefixed(['svc-data-key-v1', keyId, resourceId]);
}

/** A `DataKeyStore` in memory. */
import type { DataKeyStore, WrappedKey } from '../../src/security/data-keys.js';

export interface MemoryDataKeyStore extends DataKeyStore {
  readonly entries: Map<string, WrappedKey>;
  /** How often `get` was called. */
  readonly reads: () => number;
}

export function createMemoryDataKeyStore(): MemoryDataKeyStore {
  const entries = new Map<string, WrappedKey>();
  let reads = 0;
  return {
    entries,
    reads: () => reads,
    async get(keyId) {
      reads += 1;
      return entries.get(keyId);
    },
    async put(keyId, wrapped) {
      entries.set(keyId, structuredClone(wrapped));
    },
    async delete(keyId) {
      entries.delete(keyId);
    },
    async *list() {
      yield* entries.keys();
    },
  };
}

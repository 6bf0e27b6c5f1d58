/**
 * A map that holds at most so many entries and lets the least recently used go. Not a cache with times: whoever needs
 * expiry keeps it in the value.
 */
export interface BoundedMap<K, V> {
  /** The value, which counts as a use. */
  get(key: K): V | undefined;
  set(key: K, value: V): void;
  delete(key: K): void;
  clear(): void;
  readonly size: number;
}

export function createBoundedMap<K, V>(maxEntries: number): BoundedMap<K, V> {
  // A Map keeps the order of insertion: a use takes the entry out and puts it in again, so the first is the oldest.
  const entries = new Map<K, V>();
  return {
    get size() {
      return entries.size;
    },
    get(key) {
      const value = entries.get(key);
      if (value === undefined) return undefined;
      entries.delete(key);
      entries.set(key, value);
      return value;
    },
    set(key, value) {
      entries.delete(key);
      entries.set(key, value);
      if (entries.size <= maxEntries) return;
      for (const oldest of entries.keys()) {
        entries.delete(oldest);
        break;
      }
    },
    delete(key) {
      entries.delete(key);
    },
    clear() {
      entries.clear();
    },
  };
}

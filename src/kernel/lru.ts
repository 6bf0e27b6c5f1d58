/**
 * A map with bounds that drops its least recently used entries. It has no expiry: a caller that needs one stores the time in
 * the value. lru-cache is no substitute, because it allocates the room of all entries at once, which is megabytes for each
 * table of 100,000.
 */
export interface Lru<K, V> {
  /** The value; reading it counts as a use. */
  get(key: K): V | undefined;
  /** The value, created and kept if there is none; a use in either case. */
  getOrCreate(key: K, create: () => V): V;
  set(key: K, value: V): void;
  delete(key: K): void;
  clear(): void;
  readonly size: number;
  /** The sum of the values' weights; 0 without `weigh`. */
  readonly weight: number;
}

interface LruBounds<V> {
  readonly maxEntries: number;
  readonly maxWeight?: number;
  /** The weight of a value, the same at every call. */
  weigh?(value: V): number;
}

export function createLru<K, V>(bounds: LruBounds<V>): Lru<K, V> {
  const { maxEntries, maxWeight = Number.POSITIVE_INFINITY, weigh = () => 0 } = bounds;
  /** In the order of uses. */
  const entries = new Map<K, V>();
  // One iterator for all evictions: a new one would first pass over the holes of everything that was deleted before.
  let oldest = entries.keys();
  let weight = 0;

  const remove = (key: K): void => {
    const value = entries.get(key);
    if (value === undefined) return;
    entries.delete(key);
    weight -= weigh(value);
  };
  const get = (key: K): V | undefined => {
    const value = entries.get(key);
    if (value === undefined) return undefined;
    entries.delete(key);
    entries.set(key, value);
    return value;
  };
  const set = (key: K, value: V): void => {
    remove(key);
    entries.set(key, value);
    weight += weigh(value);
    while (entries.size > maxEntries || weight > maxWeight) {
      const next = oldest.next();
      if (next.done === true) oldest = entries.keys();
      else remove(next.value);
    }
  };

  return {
    get size() {
      return entries.size;
    },
    get weight() {
      return weight;
    },
    get,
    getOrCreate(key, create) {
      const known = get(key);
      if (known !== undefined) return known;
      const created = create();
      set(key, created);
      return created;
    },
    set,
    delete: remove,
    clear() {
      entries.clear();
      weight = 0;
    },
  };
}

/**
 * A map with bounds that drops its least recently used entries. Not a cache with times: a caller that needs expiry keeps
 * it in the value.
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
  // A Map keeps the order of insertion. A use takes the entry out and puts it in again, so the first is the oldest.
  const entries = new Map<K, V>();
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
    for (const oldest of entries.keys()) {
      if (entries.size <= maxEntries && weight <= maxWeight) break;
      remove(oldest);
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

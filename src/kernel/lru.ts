/** A bounded map that drops its least recently used entries. A caller that needs expiry keeps the time in the value. */
export interface Lru<K, V> {
  /** Reading a value counts as a use. */
  get(key: K): V | undefined;
  /** The value, created and stored if there is none; a use in either case. */
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
  /** The weight of a value, which must never change. */
  weigh?(value: V): number;
}

/** An entry between its neighbours in the order of use. */
interface Entry<K, V> {
  readonly key: K;
  value: V;
  older: Entry<K, V> | undefined;
  newer: Entry<K, V> | undefined;
}

/**
 * The order of use is a linked list. A Map's own order would do, but a Map keeps holes where entries were deleted:
 * finding the first of ten thousand entries that were all used again would walk over as many holes, at each use.
 */
export function createLru<K, V>(bounds: LruBounds<V>): Lru<K, V> {
  const { maxEntries, maxWeight = Number.POSITIVE_INFINITY, weigh = () => 0 } = bounds;
  const entries = new Map<K, Entry<K, V>>();
  let oldest: Entry<K, V> | undefined;
  let newest: Entry<K, V> | undefined;
  let weight = 0;

  const unlink = (entry: Entry<K, V>): void => {
    if (entry.older === undefined) oldest = entry.newer;
    else entry.older.newer = entry.newer;
    if (entry.newer === undefined) newest = entry.older;
    else entry.newer.older = entry.older;
  };
  const append = (entry: Entry<K, V>): void => {
    entry.older = newest;
    entry.newer = undefined;
    if (newest === undefined) oldest = entry;
    else newest.newer = entry;
    newest = entry;
  };
  const use = (entry: Entry<K, V>): void => {
    if (entry === newest) return;
    unlink(entry);
    append(entry);
  };
  const remove = (entry: Entry<K, V>): void => {
    entries.delete(entry.key);
    unlink(entry);
    weight -= weigh(entry.value);
  };

  const get = (key: K): V | undefined => {
    const entry = entries.get(key);
    if (entry === undefined) return undefined;
    use(entry);
    return entry.value;
  };
  const set = (key: K, value: V): void => {
    const known = entries.get(key);
    if (known === undefined) {
      const entry = { key, value, older: undefined, newer: undefined };
      entries.set(key, entry);
      append(entry);
    } else {
      weight -= weigh(known.value);
      known.value = value;
      use(known);
    }
    weight += weigh(value);
    while (oldest !== undefined && (entries.size > maxEntries || weight > maxWeight)) remove(oldest);
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
    delete(key) {
      const entry = entries.get(key);
      if (entry !== undefined) remove(entry);
    },
    clear() {
      entries.clear();
      oldest = undefined;
      newest = undefined;
      weight = 0;
    },
  };
}

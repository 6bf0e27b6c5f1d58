/**
 * A bounded map that drops its least recently used entries, on top of `lru-cache`. A caller that needs expiry keeps the
 * time in the value.
 */
import { LRUCache } from 'lru-cache';

export type Lru<V extends object | string | number> = LRUCache<string, V>;

export function createLru<V extends object | string | number>(maxEntries: number): Lru<V> {
  // With `max`, it would allocate the memory of all entries at once: 19 MB for the maps of an instance.
  return new LRUCache({ maxSize: maxEntries, sizeCalculation: () => 1 });
}

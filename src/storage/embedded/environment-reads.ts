/**
 * Reads of an LMDB environment: single values, ranges of keys and values, and counts. They are short and synchronous, in
 * the library's read transaction of this turn of the event loop. Writes are in `environment.ts`.
 */
import type { Database } from 'lmdb';
import type { Key } from './environment-files.js';

export interface Range {
  /** Inclusive. */
  readonly from: Buffer;
  /** Exclusive. */
  readonly to: Buffer;
  readonly reverse?: boolean;
  readonly limit: number;
}

export interface Entry {
  readonly key: Buffer;
  readonly value: Buffer;
}

export interface TextEntry {
  readonly key: Uint8Array;
  readonly text: string;
}

export interface Reads<Name extends string> {
  get(database: Name, key: Key): Buffer | undefined;
  /** Stops once `maxBytes` of values have been read, but after the first entry at the earliest. */
  entries(database: Name, range: Range & { readonly maxBytes?: number }): Entry[];
  keys(database: Name, range: Range): Buffer[];
  /** The number of keys in a range. The library counts a million keys in some tens of milliseconds. */
  count(database: Name, range: { readonly from: Buffer; readonly to: Buffer }): number;
  /** The key at `offset` in the range, undefined beyond its end. Much cheaper than reading the keys before it. */
  keyAt(database: Name, range: Omit<Range, 'limit'>, offset: number): Buffer | undefined;
  /**
   * Values of a text database. Stops once about `maxBytes` have been read, but after the first entry at the earliest.
   */
  texts(database: Name, range: Range & { readonly maxBytes: number }): TextEntry[];
}

const bytesOf = (key: Key | Uint8Array): Buffer =>
  typeof key === 'string' ? Buffer.from(key, 'latin1') : Buffer.from(key.buffer, key.byteOffset, key.byteLength);

const bounded = (range: Range): { start: Buffer; end: Buffer; limit: number } & Record<string, unknown> =>
  range.reverse === true
    ? {
        start: range.to,
        end: range.from,
        limit: range.limit,
        reverse: true,
        exclusiveStart: true,
        inclusiveEnd: true,
      }
    : { start: range.from, end: range.to, limit: range.limit };

/** @param database finds an open database @returns what throws as `database` and the library do */
export function createReads<Name extends string>(database: (name: Name) => Database<unknown, Key>): Reads<Name> {
  return {
    get: (name, key) => database(name).getBinary(key),
    entries(name, range) {
      const entries: Entry[] = [];
      let bytes = 0;
      for (const { key, value } of database(name).getRange(bounded(range))) {
        if (!(value instanceof Uint8Array)) throw new Error(`database ${name} holds text`);
        entries.push({ key: bytesOf(key), value: bytesOf(value) });
        bytes += value.byteLength;
        if (range.maxBytes !== undefined && bytes >= range.maxBytes) break;
      }
      return entries;
    },
    keys(name, range) {
      const keys: Buffer[] = [];
      for (const key of database(name).getKeys(bounded(range))) keys.push(bytesOf(key));
      return keys;
    },
    count: (name, range) => database(name).getKeysCount({ start: range.from, end: range.to }),
    keyAt(name, range, offset) {
      for (const key of database(name).getKeys({ ...bounded({ ...range, limit: 1 }), offset })) return bytesOf(key);
      return undefined;
    },
    texts(name, range) {
      const entries: TextEntry[] = [];
      let characters = 0;
      for (const { key, value } of database(name).getRange(bounded(range))) {
        if (typeof value !== 'string') throw new Error(`database ${name} holds bytes`);
        entries.push({ key: typeof key === 'string' ? bytesOf(key) : key, text: value });
        characters += value.length;
        if (characters >= range.maxBytes) break;
      }
      return entries;
    },
  };
}

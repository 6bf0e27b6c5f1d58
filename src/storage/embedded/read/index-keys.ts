/**
 * Keys of the declared indexes, whose byte order is the order of their values: collection, index, the fields' values,
 * then the id. Not the planner. Implements `read-store.ts` (IndexSpec; null, false, true, numbers, strings by code points).
 *
 * A field that is a list has one entry per distinct scalar in it, marked so that scans in order pass them by, and one
 * entry as "not a scalar". A string above `indexStringBytes` is cut and ends in a hash: equality stays exact, order does not, which
 * `parseKey` tells.
 */
import { createHash } from 'node:crypto';
import { limits } from '../../../kernel/limits.js';
import type { FieldValue, Fields, Scalar } from '../../read-store.js';

const typeNull = 0x10;
const typeFalse = 0x11;
const typeTrue = 0x12;
export const typeNumber = 0x13;
export const typeString = 0x14;
const typeOther = 0x15;
/** Set in the type of an entry that stands for one element of a list. */
const listBit = 0x80;
const stringEnd = 0x00;
const cutMark = 0xfe;
const escapedZero = 0xff;
const hashBytes = 16;

/** Appended to a prefix it is above every key that goes on with a type or an id, and below what continues a string. */
export const afterEqual = Buffer.from([0xf8]);
/** Bounds of one field's scalar values in order, list elements left out. */
export const firstScalar = Buffer.from([typeNull]);
export const afterScalars = Buffer.from([typeOther + 1]);

function encodeNumber(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(9);
  bytes.writeUInt8(typeNumber, 0);
  bytes.writeDoubleBE(value === 0 ? 0 : value, 1);
  const negative = (bytes[1] ?? 0) >= 0x80;
  if (negative) for (let index = 1; index < 9; index += 1) bytes[index] = ~(bytes[index] ?? 0) & 0xff;
  else bytes[1] = (bytes[1] ?? 0) | 0x80;
  return bytes;
}

/** The escaped bytes of a string, as many as a key may hold; `whole` tells whether that is all of them. */
function escapeText(text: Buffer): { readonly bytes: number[]; readonly whole: boolean } {
  const bytes: number[] = [];
  for (const byte of text) {
    if (bytes.length + (byte === stringEnd ? 2 : 1) > limits.storage.indexStringBytes) return { bytes, whole: false };
    bytes.push(byte);
    if (byte === stringEnd) bytes.push(escapedZero);
  }
  return { bytes, whole: true };
}

function encodeString(value: string): Buffer {
  const text = Buffer.from(value, 'utf8');
  // Nearly every string: nothing to escape, nothing to cut. Each write of a document comes here once per index.
  if (text.length <= limits.storage.indexStringBytes && !text.includes(stringEnd)) {
    const plain = Buffer.allocUnsafe(text.length + 2);
    plain[0] = typeString;
    text.copy(plain, 1);
    plain[text.length + 1] = stringEnd;
    return plain;
  }
  const { bytes, whole } = escapeText(text);
  if (whole) return Buffer.from([typeString, ...bytes, stringEnd]);
  const hash = createHash('sha256').update(text).digest().subarray(0, hashBytes);
  return Buffer.concat([Buffer.from([typeString, ...bytes, stringEnd, cutMark]), hash]);
}

/** The bytes of one scalar, as a value of its own or as an element of a list. */
export function encodeScalar(value: Scalar, inList = false): Buffer {
  const bytes =
    value === null
      ? Buffer.from([typeNull])
      : value === false
        ? Buffer.from([typeFalse])
        : value === true
          ? Buffer.from([typeTrue])
          : typeof value === 'number'
            ? encodeNumber(value)
            : encodeString(value);
  if (inList) bytes[0] = (bytes[0] ?? 0) | listBit;
  return bytes;
}

const isScalar = (value: FieldValue | undefined): value is Scalar | undefined =>
  value === undefined || value === null || typeof value !== 'object';

/** True when an index key can't hold the whole string. */
export function isCut(value: string): boolean {
  return !escapeText(Buffer.from(value, 'utf8')).whole;
}

function encodeField(value: FieldValue | undefined): Buffer[] {
  if (isScalar(value)) return [encodeScalar(value ?? null)];
  const entries: Buffer[] = [Buffer.from([typeOther])];
  if (Array.isArray(value)) {
    const elements = new Set<Scalar>(value.filter((element): element is Scalar => isScalar(element)));
    for (const element of elements) entries.push(encodeScalar(element, true));
  }
  return entries;
}

export function indexPrefix(collection: number, index: number): Buffer {
  const prefix = Buffer.allocUnsafe(6);
  prefix.writeUInt32BE(collection, 0);
  prefix.writeUInt16BE(index, 4);
  return prefix;
}

/**
 * All index keys of one document.
 * @throws RangeError when its lists make too many: a fault of the declared index.
 */
export function documentKeys(prefix: Buffer, indexed: readonly string[], id: string, fields: Fields): Buffer[] {
  let keys: Buffer[][] = [[prefix]];
  for (const field of indexed) {
    const values = encodeField(fields[field]);
    const [first] = values;
    if (values.length === 1 && first !== undefined) for (const key of keys) key.push(first);
    else keys = keys.flatMap((key) => values.map((value) => [...key, value]));
    if (keys.length > limits.storage.indexEntries) {
      throw new RangeError(
        `document ${id} has more than ${limits.storage.indexEntries} entries in index ${indexed.join(', ')}`,
      );
    }
  }
  const idBytes = Buffer.from(id, 'utf8');
  return keys.map((key) => Buffer.concat([...key, idBytes]));
}

export interface ParsedKey {
  /** The bytes of the chosen field, comparable for equality as latin-1 text. */
  readonly value: string;
  readonly id: string;
  /** The chosen field's string was cut: the order of equal prefixes is not known. */
  readonly cut: boolean;
}

function fieldEnd(key: Buffer, start: number): { end: number; cut: boolean } {
  const type = (key[start] ?? 0) & ~listBit;
  if (type === typeNumber) return { end: start + 9, cut: false };
  if (type !== typeString) return { end: start + 1, cut: false };
  let offset = start + 1;
  for (;;) {
    const zero = key.indexOf(stringEnd, offset);
    if (zero < 0) throw new Error('an index key has no end of string');
    const next = key[zero + 1];
    if (next === escapedZero) offset = zero + 2;
    else if (next === cutMark) return { end: zero + 2 + hashBytes, cut: true };
    else return { end: zero + 1, cut: false };
  }
}

/** Takes a key of `fields` fields apart. `chosen`: which field's bytes to return, or -1 for none. */
export function parseKey(key: Buffer, fields: number, chosen: number): ParsedKey {
  let offset = 6;
  let value = '';
  let cut = false;
  for (let index = 0; index < fields; index += 1) {
    const field = fieldEnd(key, offset);
    if (index === chosen) {
      value = key.toString('latin1', offset, field.end);
      cut = field.cut;
    }
    offset = field.end;
  }
  return { value, id: key.toString('utf8', offset), cut };
}

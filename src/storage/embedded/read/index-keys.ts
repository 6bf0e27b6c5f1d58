/**
 * Keys of the declared indexes: collection, index, the values of the fields, then the id. Their byte order is the order
 * of the values. Not the planner. Implements `read-store.ts` (IndexSpec, Query.sort).
 *
 * A field that is a list has one entry for the whole list and one per distinct scalar in it; the latter are marked, so
 * that ordered scans skip them. A string longer than `indexStringBytes` is cut and ends in a hash: equality stays
 * exact, order does not, and `parseKey` reports the cut.
 */
import { createHash } from 'node:crypto';
import type { FieldValue, Fields, Scalar } from '../../read-store.js';
import { tuning } from '../tuning.js';

const typeNull = 0x10;
/* 0x11 is false, 0x12 is true. */
export const typeNumber = 0x13;
export const typeString = 0x14;
const typeOther = 0x15;
/** Set in the type byte of an entry for one element of a list. */
const listBit = 0x80;
const stringEnd = 0x00;
const cutMark = 0xfe;
const escapedZero = 0xff;
const hashBytes = 16;

/**
 * Appended to a prefix, it sorts after every key that continues with a type or an id, and before a continued string.
 */
export const afterEqual = Buffer.from([0xf8]);
/** Bounds of the scalar values of one field, without list elements. */
export const firstScalar = Buffer.from([typeNull]);
export const afterScalars = Buffer.from([typeOther + 1]);

/** Bytes as latin-1 text, one character per byte. Keys are built from it, as text is cheaper to join and compare. */
type ByteText = string;

const stringStart = String.fromCharCode(typeString);
/** UTF-8 and latin-1 encode these characters alike. */
const plainText = /^[ -~]*$/;

/** The bytes of a document's id at the end of a key, as latin-1 text. */
export const idText = (id: string): ByteText => (plainText.test(id) ? id : Buffer.from(id, 'utf8').toString('latin1'));

function numberText(value: number): ByteText {
  const bytes = Buffer.allocUnsafe(9);
  bytes.writeUInt8(typeNumber, 0);
  bytes.writeDoubleBE(value === 0 ? 0 : value, 1);
  const negative = (bytes[1] ?? 0) >= 0x80;
  if (negative) for (let index = 1; index < 9; index += 1) bytes[index] = ~(bytes[index] ?? 0) & 0xff;
  else bytes[1] = (bytes[1] ?? 0) | 0x80;
  return bytes.toString('latin1');
}

/** The escaped bytes of a string, as many as fit into a key; `whole` is true when all of them fit. */
function escapeText(text: Buffer): { readonly bytes: number[]; readonly whole: boolean } {
  const bytes: number[] = [];
  for (const byte of text) {
    if (bytes.length + (byte === stringEnd ? 2 : 1) > tuning.indexStringBytes) return { bytes, whole: false };
    bytes.push(byte);
    if (byte === stringEnd) bytes.push(escapedZero);
  }
  return { bytes, whole: true };
}

function stringText(value: string): ByteText {
  // Nearly all strings need no encoding, escaping or cutting.
  if (value.length <= tuning.indexStringBytes && plainText.test(value)) return `${stringStart}${value}\0`;
  const text = Buffer.from(value, 'utf8');
  const { bytes, whole } = escapeText(text);
  const start = Buffer.from([typeString, ...bytes, stringEnd]).toString('latin1');
  if (whole) return start;
  const hash = createHash('sha256').update(text).digest().subarray(0, hashBytes);
  return start + String.fromCharCode(cutMark) + hash.toString('latin1');
}

/** The bytes of one scalar as latin-1 text. */
export function scalarText(value: Scalar): ByteText {
  if (value === null) return String.fromCharCode(typeNull);
  if (value === false) return '\x11';
  if (value === true) return '\x12';
  return typeof value === 'number' ? numberText(value) : stringText(value);
}

/** The bytes of one element of a list as latin-1 text. */
export function elementText(value: Scalar): ByteText {
  const text = scalarText(value);
  return String.fromCharCode(text.charCodeAt(0) | listBit) + text.slice(1);
}

/** The bytes of one scalar. */
export function encodeScalar(value: Scalar): Buffer {
  return Buffer.from(scalarText(value), 'latin1');
}

const isScalar = (value: FieldValue | undefined): value is Scalar | undefined =>
  value === undefined || value === null || typeof value !== 'object';

/** True when an index key cannot hold the whole string. */
export function isCut(value: string): boolean {
  return !escapeText(Buffer.from(value, 'utf8')).whole;
}

/** The entries of a field: one for a scalar; for a list, one for the whole list and then one per distinct scalar. */
function fieldTexts(value: FieldValue | undefined): ByteText | readonly ByteText[] {
  if (isScalar(value)) return scalarText(value ?? null);
  const entries: ByteText[] = [String.fromCharCode(typeOther)];
  if (Array.isArray(value)) {
    const elements = new Set<Scalar>(value.filter((element): element is Scalar => isScalar(element)));
    for (const element of elements) entries.push(elementText(element));
  }
  return entries;
}

export function indexPrefix(collection: number, index: number): Buffer {
  const prefix = Buffer.allocUnsafe(6);
  prefix.writeUInt32BE(collection, 0);
  prefix.writeUInt16BE(index, 4);
  return prefix;
}

export interface KeyedIndex {
  /** `indexPrefix` as latin-1 text. */
  readonly prefix: string;
  readonly fields: readonly string[];
  readonly grouped: boolean;
}

export interface DocumentKeys {
  /** As latin-1 text. */
  readonly keys: readonly string[];
  /**
   * What each key begins with: its group in a grouped index, otherwise the prefix of its index. Keys of one group are made
   * nearly in order, as its last field is mostly a time.
   */
  readonly heads: readonly string[];
  /** The groups of grouped indexes that contain the document: prefix and the bytes of all fields but the last. */
  readonly groups: readonly string[];
}

/**
 * All keys of one document in the given indexes. Each field is encoded once for all of them.
 * @throws RangeError when its lists need too many entries, which is a fault of the declared index
 */
export function documentKeys(indexes: readonly KeyedIndex[], id: string, fields: Fields): DocumentKeys {
  const keys: string[] = [];
  const heads: string[] = [];
  const groups: string[] = [];
  const encoded = new Map<string, ByteText | readonly ByteText[]>();
  const end = idText(id);
  for (const { prefix, fields: indexed, grouped } of indexes) {
    // Most indexes have no list, and so one key.
    let start: ByteText = prefix;
    let starts: readonly ByteText[] | undefined;
    const last = indexed.length - 1;
    const firstGroup = groups.length;
    for (let place = 0; place <= last; place += 1) {
      const field = indexed[place] as string;
      const isLast = place === last;
      if (grouped && isLast) {
        if (starts === undefined) groups.push(start);
        else groups.push(...starts);
      }
      let values = encoded.get(field);
      if (values === undefined) {
        values = fieldTexts(fields[field]);
        encoded.set(field, values);
      }
      if (typeof values === 'string' && starts === undefined) {
        start += values;
        continue;
      }
      const texts = typeof values === 'string' ? [values] : values;
      // Queries on a grouped index bind the leading fields to values, so the entry for the whole list is not needed.
      const entries = typeof values !== 'string' && grouped && !isLast ? texts.slice(1) : texts;
      starts = (starts ?? [start]).flatMap((before) => entries.map((entry) => before + entry));
      if (starts.length > tuning.indexEntries) {
        throw new RangeError(
          `document ${id} has more than ${tuning.indexEntries} entries in index ${indexed.join(', ')}`,
        );
      }
    }
    if (starts === undefined) {
      keys.push(start + end);
      heads.push(groups[firstGroup] ?? prefix);
      continue;
    }
    // The last field is a list where there are more keys than groups.
    const ofGroup = groups.length - firstGroup === starts.length;
    for (let at = 0; at < starts.length; at += 1) {
      keys.push((starts[at] ?? '') + end);
      heads.push((ofGroup ? groups[firstGroup + at] : undefined) ?? prefix);
    }
  }
  return { keys, heads, groups };
}

/** False for anything but scalars and lists of them: nothing else is indexed by its content. */
function sameValue(a: FieldValue, b: FieldValue): boolean {
  if (a === b) return true;
  if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
  return a.every((element, index) => element === b[index]);
}

/** True when a document keeps its keys in an index because none of the indexed fields changes. */
export function keepsKeys({ fields }: Pick<KeyedIndex, 'fields'>, before: Fields, after: Fields): boolean {
  return fields.every((field) => sameValue(before[field] ?? null, after[field] ?? null));
}

export interface ParsedKey {
  /** The bytes of the chosen field, comparable for equality as latin-1 text. */
  readonly value: string;
  readonly id: string;
  /** The string of the chosen field was cut, so its order among equal prefixes is unknown. */
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

/** Parses a key of `fields` fields. `chosen` is the field whose bytes to return, or -1 for none. */
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

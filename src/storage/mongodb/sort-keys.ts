/**
 * The shadow keys of a document, which queries run on: strings whose order is the port's order of values, so that any
 * server answers exactly with its plain comparison of strings. Not the documents themselves (`document-codec.ts`).
 * Implements `read-store.ts` (Filter, Query.sort) and agrees with `field-values.ts`.
 *
 * MongoDB's own order differs: lists sort by an element, booleans come last, a range also matches elements of lists,
 * and neither an index nor a sort allows two lists in one document. So each field has
 * - an order key, which is never a list: the value, or a mark for a list, an object or bytes;
 * - equality keys: that of the value, or one for each scalar in the list.
 *
 * A null field has neither, like a missing one; servers treat both alike.
 */
import { createHash } from 'node:crypto';
import type { FieldValue, Fields, Scalar } from '../read-store.js';

const falseKey = '1';
const trueKey = '2';
const numberType = '3';
/** Prefix of the order keys of strings; nothing else lies between it and `afterStrings`. */
export const stringType = '4';
export const afterStrings = '5';
/** The order key of anything but a scalar. */
export const otherKey = '5';
const hashedType = '6';
/** Longer equality keys are hashed. */
const equalityKeyChars = 100;

/** 16 hexadecimal digits that sort like the numbers. */
function numberDigits(value: number): string {
  const view = new DataView(new ArrayBuffer(8));
  // Minus zero equals zero.
  view.setFloat64(0, value === 0 ? 0 : value);
  const bits = view.getBigUint64(0);
  const sign = 1n << 63n;
  const ordered = bits >= sign ? BigInt.asUintN(64, ~bits) : bits | sign;
  return ordered.toString(16).padStart(16, '0');
}

/** The order key of a value, or null. */
export function orderKey(value: FieldValue | undefined): string | null {
  if (value === null || value === undefined) return null;
  if (typeof value === 'boolean') return value ? trueKey : falseKey;
  if (typeof value === 'number') return `${numberType}${numberDigits(value)}`;
  return typeof value === 'string' ? `${stringType}${value}` : otherKey;
}

/** The equality key of a scalar, or null. */
export function equalityKey(value: Scalar): string | null {
  const key = orderKey(value);
  if (key === null || key.length <= equalityKeyChars) return key;
  return `${hashedType}${createHash('sha256').update(key).digest('hex')}`;
}

type EqualityKeys = string | readonly (string | null)[];

function equalityKeys(value: FieldValue | undefined): EqualityKeys | null {
  if (Array.isArray(value)) {
    const scalars = value.filter((entry): entry is Scalar => entry === null || typeof entry !== 'object');
    return [...new Set(scalars.map(equalityKey))];
  }
  return value === null || value === undefined || typeof value !== 'object' ? equalityKey(value ?? null) : otherKey;
}

/**
 * Encodes a field name as one step of a path. Dots and dollars are special there, and a leading underscore may be
 * special to the driver.
 */
export function pathStep(field: string): string {
  if (field === '') return '%';
  return field.replace(/^_|[%.$\0]/g, (char) => `%${char.charCodeAt(0).toString(16).padStart(2, '0')}`);
}

export interface Shadow {
  readonly order: { readonly [step: string]: string };
  readonly equal: { readonly [step: string]: EqualityKeys };
}

/** The shadow keys of all fields. */
export function shadowOf(fields: Fields): Shadow {
  const order: [string, string][] = [];
  const equal: [string, EqualityKeys][] = [];
  for (const [field, value] of Object.entries(fields)) {
    const key = orderKey(value);
    const keys = equalityKeys(value);
    if (key !== null) order.push([pathStep(field), key]);
    if (keys !== null) equal.push([pathStep(field), keys]);
  }
  return { order: Object.fromEntries(order), equal: Object.fromEntries(equal) };
}

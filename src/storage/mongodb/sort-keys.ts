/**
 * The shadow of a document that queries run on: strings whose order is the port's order of values, so that any server
 * answers exactly, with its plain comparison of strings. Not the documents themselves (document-codec.ts).
 * Implements `read-store.ts` (Filter, Query.sort); agrees with `field-values.ts`.
 *
 * MongoDB's own order of values is another one (lists sort by an element, booleans come last), a range also matches
 * elements of lists, and neither an index nor a sort takes two lists of one document. So each field has
 * - an order key, never a list: the field's value, or that it is a list, an object or bytes;
 * - equality keys: those of the value, or of each scalar in the list.
 * A field that is null has neither, like one that is missing: the server holds both for the same.
 */
import { createHash } from 'node:crypto';
import type { FieldValue, Fields, Scalar } from '../read-store.js';

const falseKey = '1';
const trueKey = '2';
const numberType = '3';
/** Order keys of strings begin so; nothing else lies between this and `afterStrings`. */
export const stringType = '4';
export const afterStrings = '5';
/** The order key of what is no scalar. */
export const otherKey = '5';
const hashedType = '6';
/** Longer keys are hashed where only equality counts. */
const equalityKeyChars = 100;

/** 16 hexadecimal digits, ordered like the numbers. */
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
 * A name as one step of a path. Dots and dollars mean something there; an underscore at the start may mean something to
 * the driver.
 */
export function pathStep(field: string): string {
  if (field === '') return '%';
  return field.replace(/^_|[%.$\0]/g, (char) => `%${char.charCodeAt(0).toString(16).padStart(2, '0')}`);
}

export interface Shadow {
  readonly order: { readonly [step: string]: string };
  readonly equal: { readonly [step: string]: EqualityKeys };
}

/** The keys of all fields. */
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

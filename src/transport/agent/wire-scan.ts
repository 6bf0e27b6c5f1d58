/**
 * Walks over protobuf bytes before they are decoded: checks their form and counts repeated fields. The generated decoder
 * accepts malformed tails, and would build a million objects of a message only to refuse it for its counts.
 */
import { err, ok } from '../../kernel/result.js';
import type { Result } from '../../kernel/result.js';

interface WireField {
  readonly number: number;
  /** 0 varint, 1 eight bytes, 2 length-delimited, 5 four bytes. */
  readonly wireType: number;
  /** Value of a varint, exact up to 2^53; 0 for the other wire types. */
  readonly varint: number;
  /** Where the content of a length-delimited field begins and ends. */
  readonly start: number;
  readonly end: number;
}

const maxVarintBytes = 10;
const maxFieldNumber = 2 ** 29 - 1;

/** Visits each field of one message in order. Returns false if the bytes are malformed or a visit returns false. */
export function scanMessage(
  bytes: Uint8Array,
  start: number,
  end: number,
  visit: (field: WireField) => boolean,
): boolean {
  let position = start;
  let failed = false;
  const varint = (): number => {
    let value = 0;
    let factor = 1;
    for (let read = 0; read < maxVarintBytes && position < end; read += 1) {
      const byte = bytes[position] ?? 0;
      position += 1;
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
      factor *= 128;
    }
    failed = true;
    return 0;
  };

  while (position < end) {
    const tag = varint();
    const number = Math.floor(tag / 8);
    const wireType = tag % 8;
    if (failed || number === 0 || number > maxFieldNumber) return false;
    let value = 0;
    let from = position;
    switch (wireType) {
      case 0:
        value = varint();
        break;
      case 1:
        position += 8;
        break;
      case 2: {
        const length = varint();
        from = position;
        position += length;
        break;
      }
      case 5:
        position += 4;
        break;
      default:
        // Groups are not part of this protocol.
        return false;
    }
    if (failed || position > end) return false;
    if (!visit({ number, wireType, varint: value, start: from, end: position })) return false;
  }
  return true;
}

/** Which fields of a message are messages to walk into, and which fields are counted against a limit. */
export interface WireShape {
  readonly nested?: { readonly [field: number]: WireShape };
  readonly counted?: { readonly [field: number]: { readonly name: string; readonly max: number } };
}

/** Why bytes are refused; `tooMany` names the field whose count is above its limit. */
type ShapeError = 'malformed' | { readonly tooMany: string };

/** Decodes a message whose bytes are well-formed and within the counts of `shape`. */
export function decodeStrictly<T>(
  type: { decode(bytes: Uint8Array): T },
  bytes: Uint8Array,
  shape: WireShape = {},
): Result<T, ShapeError> {
  const checked = checkShape(bytes, shape);
  if (checked !== 'fits') return err(checked);
  try {
    return ok(type.decode(bytes));
  } catch {
    return err('malformed');
  }
}

/** Counts are over the whole message, wherever the field repeats. @internal exported for tests */
export function checkShape(bytes: Uint8Array, shape: WireShape): 'fits' | ShapeError {
  const counts = new Map<string, number>();
  let tooMany: string | undefined;
  const walk = (from: number, to: number, current: WireShape): boolean =>
    scanMessage(bytes, from, to, (field) => {
      if (field.wireType !== 2) return true;
      const counted = current.counted?.[field.number];
      if (counted !== undefined) {
        const count = (counts.get(counted.name) ?? 0) + 1;
        counts.set(counted.name, count);
        if (count > counted.max) {
          tooMany = counted.name;
          return false;
        }
      }
      const nested = current.nested?.[field.number];
      return nested === undefined || walk(field.start, field.end, nested);
    });
  if (walk(0, bytes.length, shape)) return 'fits';
  return tooMany === undefined ? 'malformed' : { tooMany };
}

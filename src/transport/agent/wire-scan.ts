/**
 * Walks over protobuf bytes before they are decoded: checks their form and counts repeated fields. The generated decoder
 * accepts malformed tails, and would build a million objects of a message only to refuse it for its counts. The walk
 * allocates nothing per field, because it is what a hostile message costs at least.
 */
import { err, ok } from '../../kernel/result.js';
import type { Result } from '../../kernel/result.js';

/** One field as it was read last. */
interface WireField {
  number: number;
  /** 0 varint, 1 eight bytes, 2 length-delimited, 5 four bytes. */
  wireType: number;
  /** Value of a varint, exact up to 2^53; the length of a length-delimited field. */
  varint: number;
  /** Where the content of a length-delimited field begins and ends. */
  start: number;
  end: number;
}

const maxVarintBytes = 10;
const maxFieldNumber = 2 ** 29 - 1;
/** Instead of a position: the bytes are malformed. */
const malformed = -1;

const emptyField = (): WireField => ({ number: 0, wireType: 0, varint: 0, start: 0, end: 0 });

/** Reads a varint into `field.varint`. @returns the position behind it, or `malformed` */
function readVarint(bytes: Uint8Array, at: number, end: number, field: WireField): number {
  let value = 0;
  let factor = 1;
  const last = Math.min(end, at + maxVarintBytes);
  for (let position = at; position < last; position += 1) {
    const byte = bytes[position] ?? 0;
    value += (byte & 0x7f) * factor;
    if (byte < 0x80) {
      field.varint = value;
      return position + 1;
    }
    factor *= 128;
  }
  return malformed;
}

/** Reads one field into `field`. @returns the position behind it, or `malformed` */
function readField(bytes: Uint8Array, at: number, end: number, field: WireField): number {
  let position = readVarint(bytes, at, end, field);
  if (position === malformed) return malformed;
  field.number = Math.floor(field.varint / 8);
  field.wireType = field.varint % 8;
  if (field.number === 0 || field.number > maxFieldNumber) return malformed;
  field.start = position;
  switch (field.wireType) {
    case 0:
      position = readVarint(bytes, position, end, field);
      break;
    case 1:
      position += 8;
      break;
    case 2:
      position = readVarint(bytes, position, end, field);
      if (position === malformed) return malformed;
      field.start = position;
      position += field.varint;
      break;
    case 5:
      position += 4;
      break;
    default:
      // Groups are not part of this protocol.
      return malformed;
  }
  field.end = position;
  return position > end ? malformed : position;
}

/**
 * Visits each field of one message in order; what a visit gets is overwritten by the next one.
 * @returns false if the bytes are malformed
 */
export function scanMessage(bytes: Uint8Array, visit: (field: Readonly<WireField>) => void): boolean {
  const field = emptyField();
  for (let position = 0; position < bytes.length;) {
    position = readField(bytes, position, bytes.length, field);
    if (position === malformed) return false;
    visit(field);
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

/** Counts are over the whole message, wherever the field repeats. */
type Counts = ReadonlyMap<string, number>;

interface Decoder<T> {
  decode(bytes: Uint8Array): T;
}

/** Decodes a message whose bytes are well-formed. */
export function decodeStrictly<T>(type: Decoder<T>, bytes: Uint8Array): Result<T, ShapeError> {
  const decoded = decodeCounted(type, bytes, {});
  return decoded.ok ? ok(decoded.value.message) : decoded;
}

/** Decodes a message whose bytes are well-formed and within the counts of `shape`; with the counts. */
export function decodeCounted<T>(
  type: Decoder<T>,
  bytes: Uint8Array,
  shape: WireShape,
): Result<{ readonly message: T; readonly counts: Counts }, ShapeError> {
  const counts = countFields(bytes, shape);
  if (!counts.ok) return counts;
  try {
    return ok({ message: type.decode(bytes), counts: counts.value });
  } catch {
    return err('malformed');
  }
}

/** @internal exported for tests */
export function countFields(bytes: Uint8Array, shape: WireShape): Result<Counts, ShapeError> {
  const counts = new Map<string, number>();
  const field = emptyField();
  let tooMany: string | undefined;
  const walk = (from: number, to: number, { counted, nested }: WireShape): boolean => {
    for (let position = from; position < to;) {
      position = readField(bytes, position, to, field);
      if (position === malformed) return false;
      if (field.wireType !== 2) continue;
      const { number, start, end } = field;
      const limit = counted?.[number];
      if (limit !== undefined) {
        const count = (counts.get(limit.name) ?? 0) + 1;
        counts.set(limit.name, count);
        if (count > limit.max) {
          tooMany = limit.name;
          return false;
        }
      }
      const inside = nested?.[number];
      if (inside !== undefined && !walk(start, end, inside)) return false;
    }
    return true;
  };
  if (walk(0, bytes.length, shape)) return ok(counts);
  return err(tooMany === undefined ? 'malformed' : { tooMany });
}

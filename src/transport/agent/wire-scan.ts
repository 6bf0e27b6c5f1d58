/**
 * Walks over protobuf bytes before they are decoded: checks their form and counts repeated fields. The generated decoder
 * accepts malformed tails, and would build a million objects of a message only to refuse it for its counts. The walk
 * allocates nothing per field, because it is what a hostile message costs at least.
 */
import { err, ok } from '../../kernel/result.js';
import type { Result } from '../../kernel/result.js';

/** One field as it was read last. */
export interface WireField {
  number: number;
  /** 0 varint, 1 eight bytes, 2 length-delimited, 5 four bytes. */
  wireType: number;
  /** Value of a varint, exact up to 2^53; the length of a length-delimited field. */
  varint: number;
  /** Where the content of a length-delimited field begins and ends; of any other, where its value does. */
  start: number;
  end: number;
}

const maxVarintBytes = 10;
const maxFieldNumber = 2 ** 29 - 1;
/** Instead of a position: the bytes are malformed. */
export const malformed = -1;

export const emptyField = (): WireField => ({ number: 0, wireType: 0, varint: 0, start: 0, end: 0 });

/** Reads a varint into `field.varint`. @returns the position behind it, or `malformed` */
function readVarint(bytes: Uint8Array, at: number, end: number, field: WireField): number {
  const first = at < end ? (bytes[at] ?? 0) : 0x80;
  // Nearly all tags and lengths are one byte.
  if (first < 0x80) {
    field.varint = first;
    return at + 1;
  }
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
export function readField(bytes: Uint8Array, at: number, end: number, field: WireField): number {
  let position = readVarint(bytes, at, end, field);
  if (position === malformed) return malformed;
  const tag = field.varint;
  field.number = Math.floor(tag / 8);
  field.wireType = tag % 8;
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

/** Whether a message inside a message is well-formed. */
export function isWellFormed(bytes: Uint8Array, from: number, to: number): boolean {
  const field = emptyField();
  let position = from;
  while (position !== malformed && position < to) position = readField(bytes, position, to, field);
  return position !== malformed;
}

/** What a walk does with the fields of a message, by field number. */
export interface WireShape {
  readonly [field: number]: FieldShape;
}

interface FieldShape {
  /** Each entry is counted against a limit, over the whole message, wherever the field repeats. */
  readonly counted?: { readonly name: string; readonly max: number };
  /** The field is a message to walk into. */
  readonly nested?: WireShape;
  /** A length or a varint above this is unusual: whoever asks whether a message is usual gets a no. */
  readonly usual?: number;
}

/** A shape with an array index for each field number and a place for each count: objects are slow to look into. */
export interface WalkPlan {
  readonly root: WalkedMessage;
  readonly counters: number;
}

type WalkedMessage = readonly (WalkedField | undefined)[];

interface WalkedField {
  /** Place of its count, or -1. */
  readonly counter: number;
  readonly name: string;
  readonly max: number;
  readonly nested: WalkedMessage | undefined;
  readonly usual: number;
}

/** Above every length; a small integer, because comparing with infinity is slower. */
const anyLength = 2 ** 30 - 1;

/** Prepares a shape for many walks. Fields of one name share a count. */
export function planWalk(shape: WireShape): WalkPlan {
  const names: string[] = [];
  const placeOf = (name: string): number => (names.includes(name) ? names.indexOf(name) : names.push(name) - 1);
  const plan = (fields: WireShape): WalkedMessage => {
    const walked: (WalkedField | undefined)[] = [];
    for (const [number, { counted, nested, usual }] of Object.entries(fields as Record<string, FieldShape>)) {
      while (walked.length <= Number(number)) walked.push(undefined);
      walked[Number(number)] = {
        counter: counted === undefined ? -1 : placeOf(counted.name),
        name: counted?.name ?? '',
        max: counted?.max ?? 0,
        nested: nested === undefined ? undefined : plan(nested),
        usual: usual ?? anyLength,
      };
    }
    return walked;
  };
  const root = plan(shape);
  return { root, counters: names.length };
}

/** Why bytes are refused; `tooMany` names the field whose count is above its limit. */
type ShapeError = 'malformed' | { readonly tooMany: string };

interface Walked {
  /** All counts together. */
  readonly entries: number;
  /** No field is above what the shape calls usual. */
  readonly usual: boolean;
}

interface Decoder<T> {
  decode(bytes: Uint8Array): T;
}

const anyShape = planWalk({});

/** Decodes a message whose bytes are well-formed. */
export function decodeStrictly<T>(type: Decoder<T>, bytes: Uint8Array): Result<T, ShapeError> {
  const walked = walkMessage(bytes, anyShape);
  return walked.ok ? decodeWalked(type, bytes) : walked;
}

/** Decodes a message whose bytes have been found well-formed. */
export function decodeWalked<T>(type: Decoder<T>, bytes: Uint8Array): Result<T, 'malformed'> {
  try {
    return ok(type.decode(bytes));
  } catch {
    return err('malformed');
  }
}

/** Walks a whole message, and into those inside that the plan names. */
export function walkMessage(bytes: Uint8Array, plan: WalkPlan): Result<Walked, ShapeError> {
  const walk: Walk = {
    bytes,
    counts: new Int32Array(plan.counters),
    field: emptyField(),
    entries: 0,
    usual: true,
    tooMany: undefined,
  };
  if (walkInside(walk, 0, bytes.length, plan.root)) return ok({ entries: walk.entries, usual: walk.usual });
  return err(walk.tooMany === undefined ? 'malformed' : { tooMany: walk.tooMany });
}

interface Walk {
  readonly bytes: Uint8Array;
  readonly counts: Int32Array;
  readonly field: WireField;
  entries: number;
  usual: boolean;
  tooMany: string | undefined;
}

/** A function with locals and no closure: it runs a thousand times for a full heartbeat. @returns false to refuse */
function walkInside(walk: Walk, from: number, to: number, message: WalkedMessage): boolean {
  const { bytes, field } = walk;
  for (let position = from; position < to;) {
    const tag = bytes[position] ?? 0;
    let length = position + 1 < to ? (bytes[position + 1] ?? 0x80) : 0x80;
    let number = tag >>> 3;
    let start = position + 2;
    let end = start + length;
    let delimited = true;
    // Nearly all fields are short texts and messages, with one byte of tag and one of length: read without a call.
    if (number > 0 && (tag & 0x87) === 2 && length < 0x80 && end <= to) {
      position = end;
    } else {
      position = readField(bytes, position, to, field);
      if (position === malformed) return false;
      ({ number, start, end, varint: length } = field);
      delimited = field.wireType === 2;
    }
    const walked = number < message.length ? message[number] : undefined;
    if (walked === undefined) continue;
    if (length > walked.usual) walk.usual = false;
    if (!delimited) continue;
    const { counter, nested } = walked;
    if (counter >= 0) {
      const count = (walk.counts[counter] ?? 0) + 1;
      walk.counts[counter] = count;
      walk.entries += 1;
      if (count > walked.max) {
        walk.tooMany = walked.name;
        return false;
      }
    }
    if (nested !== undefined && !walkInside(walk, start, end, nested)) return false;
  }
  return true;
}

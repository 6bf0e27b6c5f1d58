/**
 * A document as bytes: JSON, followed by the raw bytes of its binary fields, such as a last-good snapshot.
 */
import type { FieldValue, Fields, StoredDocument } from '../../read-store.js';

type Plain = readonly [position: number, fields: Fields];
type WithBytes = readonly [
  position: number,
  fields: Fields,
  binary: readonly (readonly [field: string, length: number])[],
];

const binaryMark = 2;

function hasBinary(fields: Fields): boolean {
  for (const field in fields) if (fields[field] instanceof Uint8Array) return true;
  return false;
}

export function encodeDocument(position: number, fields: Fields): Buffer {
  if (!hasBinary(fields)) return Buffer.from(JSON.stringify([position, fields]));
  const binary = Object.entries(fields).filter(
    (entry): entry is [string, Uint8Array] => entry[1] instanceof Uint8Array,
  );
  const names = new Set(binary.map(([field]) => field));
  const rest = Object.fromEntries(Object.entries(fields).filter(([field]) => !names.has(field)));
  const text = Buffer.from(JSON.stringify([position, rest, binary.map(([field, bytes]) => [field, bytes.length])]));
  const head = Buffer.allocUnsafe(5);
  head.writeUInt8(binaryMark, 0);
  head.writeUInt32BE(text.length, 1);
  return Buffer.concat([head, text, ...binary.map(([, bytes]) => bytes)]);
}

export function decodeDocument(id: string, value: Buffer): StoredDocument {
  if (value[0] !== binaryMark) {
    const [position, fields] = JSON.parse(value.toString('utf8')) as Plain;
    return { id, position, fields };
  }
  const end = 5 + value.readUInt32BE(1);
  const [position, fields, binary] = JSON.parse(value.toString('utf8', 5, end)) as WithBytes;
  const all: Record<string, FieldValue> = { ...fields };
  let offset = end;
  for (const [field, length] of binary) {
    all[field] = new Uint8Array(value.subarray(offset, offset + length));
    offset += length;
  }
  return { id, position, fields: all };
}

/** The position of a stored document, without decoding the rest. */
export function documentPosition(value: Buffer): number {
  const start = value[0] === binaryMark ? 6 : 1;
  return Number(value.toString('latin1', start, value.indexOf(',', start)));
}

/**
 * Walks over protobuf bytes before they are decoded: checks their form and counts repeated fields. The generated
 * decoder accepts groups, and would build a million objects from a message only to refuse it for its counts. Serves the
 * limits of `docs/contract/agent-protocol.md#control`.
 */
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import { err, ok, type Result } from '../../kernel/result.js';

/** What a walk does with the fields of a message, by field number. */
export interface WireShape {
  readonly [field: number]: {
    /** The size of one entry is limited. */
    readonly sized?: { readonly name: string; readonly maxBytes: number };
    /** Each entry counts against a limit, over the whole message, wherever the field repeats. */
    readonly counted?: { readonly name: string; readonly max: number };
    /** The field is a message to walk into. */
    readonly nested?: WireShape;
  };
}

/** Why bytes are refused; an object names the field whose count or size exceeds its limit. */
type ShapeError = 'malformed' | { readonly tooMany: string } | { readonly tooLong: string };

interface Decoder<T> {
  decode(bytes: Uint8Array): T;
}

/** Decodes a message, unless its bytes are malformed. */
export function decodeStrictly<T>(type: Decoder<T>, bytes: Uint8Array): Result<T, ShapeError> {
  const walked = walkMessage(bytes, {});
  return walked.ok ? decodeWalked(type, bytes) : walked;
}

/** Decodes a message whose bytes are known to be well-formed. */
export function decodeWalked<T>(type: Decoder<T>, bytes: Uint8Array): Result<T, 'malformed'> {
  try {
    return ok(type.decode(bytes));
  } catch {
    return err('malformed');
  }
}

/**
 * Walks a whole message, and the messages inside it that the shape names.
 * @returns how many entries were counted, over all counted fields
 */
export function walkMessage(bytes: Uint8Array, shape: WireShape): Result<number, ShapeError> {
  const counts = new Map<string, number>();
  try {
    const refused = walkFields(new BinaryReader(bytes), bytes.length, shape, counts);
    return refused === undefined ? ok([...counts.values()].reduce((sum, count) => sum + count, 0)) : err(refused);
  } catch {
    // The reader throws for an invalid tag, number or end.
    return err('malformed');
  }
}

function walkFields(
  reader: BinaryReader,
  end: number,
  shape: WireShape,
  counts: Map<string, number>,
): ShapeError | undefined {
  while (reader.pos < end) {
    const [number, wireType] = reader.tag();
    if (wireType !== WireType.LengthDelimited) {
      if (!passOver(reader, wireType)) return 'malformed';
      continue;
    }
    const length = reader.uint32();
    const contentEnd = reader.pos + length;
    if (contentEnd > end) return 'malformed';
    const { counted, nested, sized } = shape[number] ?? {};
    if (sized !== undefined && length > sized.maxBytes) return { tooLong: sized.name };
    if (counted !== undefined) {
      const count = (counts.get(counted.name) ?? 0) + 1;
      if (count > counted.max) return { tooMany: counted.name };
      counts.set(counted.name, count);
    }
    const refused = nested === undefined ? undefined : walkFields(reader, contentEnd, nested, counts);
    if (refused !== undefined) return refused;
    reader.pos = contentEnd;
  }
  return reader.pos === end ? undefined : 'malformed';
}

/** @returns false for a group, which is not part of this protocol */
export function passOver(reader: BinaryReader, wireType: WireType): boolean {
  switch (wireType) {
    case WireType.Varint:
      // Unlike `skip`, it refuses more than ten bytes.
      reader.uint32();
      return true;
    case WireType.Bit32:
    case WireType.Bit64:
      reader.skip(wireType);
      return true;
    default:
      return false;
  }
}

/**
 * The fields that a light agent reads from an answer's header lists: `grpc-status` and `server-time-ms`. Not an HPACK
 * decoder: the connection allows the service no dynamic table, so each list can be read alone, and only the characters
 * of those two fields are known. Follows RFC 7541, sections 5 and 6 and appendix B.
 */

/** Undefined: the list does not name it, or names it in an unknown encoding. */
export interface Trailers {
  readonly grpcStatus: number | undefined;
  readonly serverTimeMs: number | undefined;
}

/** Huffman codes by length, in the order of their values. */
const codesByLength: readonly (readonly [bits: number, first: number, characters: string])[] = [
  [5, 0x00, '012ace'],
  [5, 0x06, 'iost'],
  [6, 0x16, '-'],
  [6, 0x19, '3456789'],
  [6, 0x23, 'b'],
  [6, 0x24, 'dfghlmnpru'],
  [7, 0x74, 'jkqvwxyz'],
];
const characterOf = new Map(
  codesByLength.flatMap(([bits, first, characters]) =>
    [...characters].map((character, index): [number, string] => [(1 << bits) | (first + index), character]),
  ),
);
const longestCode = 7;

/** The text of a Huffman-coded string of lower-case letters, digits and hyphens; undefined for any other. */
function huffmanText(bytes: Uint8Array): string | undefined {
  let text = '';
  // A leading 1 preserves a code's leading zeros.
  let code = 1;
  let bits = 0;
  for (const byte of bytes) {
    for (let bit = 7; bit >= 0; bit -= 1) {
      code = (code << 1) | ((byte >> bit) & 1);
      bits += 1;
      const character = characterOf.get(code);
      if (character !== undefined) {
        text += character;
        code = 1;
        bits = 0;
      } else if (bits > longestCode) {
        return undefined;
      }
    }
  }
  // The rest of the last byte is filled with ones.
  return code === (2 << bits) - 1 ? text : undefined;
}

/** Reads one header block of a connection without a dynamic table. */
export function readTrailers(block: Uint8Array): Trailers {
  let at = 0;
  const found = { grpcStatus: undefined as number | undefined, serverTimeMs: undefined as number | undefined };

  /** An integer with a prefix of `bits` bits. */
  const integer = (bits: number): number => {
    const full = (1 << bits) - 1;
    let value = (block[at++] ?? 0) & full;
    if (value < full) return value;
    for (let shift = 0; shift < 28; shift += 7) {
      const byte = block[at++] ?? 0;
      value += (byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    return value;
  };
  const string = (): string | undefined => {
    const coded = ((block[at] ?? 0) & 0x80) !== 0;
    const length = integer(7);
    const bytes = block.subarray(at, at + length);
    at += length;
    return coded ? huffmanText(bytes) : Buffer.from(bytes).toString('latin1');
  };

  while (at < block.length) {
    const first = block[at] ?? 0;
    if (first >= 0x80) {
      integer(7);
    } else if ((first & 0xe0) === 0x20) {
      integer(5);
    } else {
      const index = integer(first >= 0x40 ? 6 : 4);
      const name = index === 0 ? string() : undefined;
      const value = string();
      if (value === undefined || !/^\d{1,15}$/.test(value)) continue;
      if (name === 'grpc-status') found.grpcStatus = Number(value);
      if (name === 'server-time-ms') found.serverTimeMs = Number(value);
    }
  }
  return found;
}

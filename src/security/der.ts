/** The entries of a DER structure, as bytes. Not a decoder: it finds one part of a certificate that Node cannot give. */

/**
 * The entries inside the first `depth` levels of the first element, each with its tag and length.
 * @throws RangeError for bytes that end too early
 */
export function derEntries(bytes: Uint8Array, depth: number): readonly Uint8Array[] {
  let inside = bytes;
  for (let level = 0; level < depth; level += 1) {
    const { from, to } = contentAt(inside, 0);
    inside = inside.subarray(from, to);
  }
  const entries: Uint8Array[] = [];
  for (let at = 0; at < inside.length;) {
    const { to } = contentAt(inside, at);
    entries.push(inside.subarray(at, to));
    at = to;
  }
  return entries;
}

/** Where the content of the element at an offset begins and ends. */
function contentAt(bytes: Uint8Array, at: number): { readonly from: number; readonly to: number } {
  const first = bytes[at + 1] ?? 0;
  const lengthBytes = first < 0x80 ? 0 : first & 0x7f;
  let length = lengthBytes === 0 ? first : 0;
  for (let index = 0; index < lengthBytes; index += 1) length = length * 256 + (bytes[at + 2 + index] ?? 0);
  const from = at + 2 + lengthBytes;
  if (from + length > bytes.length) throw new RangeError('DER ends too early');
  return { from, to: from + length };
}

/** The order of names and ids in lists. Implements `docs/contract/rest.md#envelope`, list queries. */

/**
 * Compares strings by code point, which is also the order of their UTF-8 bytes. JavaScript compares UTF-16 code units,
 * which puts U+10000 and above before U+E000.
 */
export function compareText(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let index = 0; index < length; index += 1) {
    const left = a.charCodeAt(index);
    const right = b.charCodeAt(index);
    if (left === right) continue;
    if (left < 0xd800 || right < 0xd800) return left - right;
    const fix = (unit: number): number => (unit >= 0xe000 ? unit - 0x800 : unit + 0x2000);
    return fix(left) - fix(right);
  }
  return a.length - b.length;
}

/** Upper bounds of encoded sizes from lengths alone, cheap enough for every rule of a touched node. */

/** One rule and its cluster without names and lists: ids, addresses, ports, profiles and field tags. */
export const ruleBytes = 2048;

/** UTF-8 needs at most three bytes per unit of a string's length. */
const bytesPerUnit = 3;
/** The tag and the length of a list entry. */
const entryBytes = 8;

export function textBound(text = ''): number {
  return text.length * bytesPerUnit;
}

const noTexts: readonly string[] = [];

export function listBound(list: readonly string[] = noTexts): number {
  let sum = 0;
  for (const entry of list) sum += entry.length * bytesPerUnit + entryBytes;
  return sum;
}

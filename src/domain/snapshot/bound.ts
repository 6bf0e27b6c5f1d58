/** Bounds of encoded sizes that only add up lengths: cheap enough to run for every rule of a touched node. */

/** Ids, addresses, ports, profiles and field tags of one rule and its cluster, names and lists aside. */
export const ruleBytes = 2048;

/** UTF-8 needs at most three bytes for each unit of a string's length. */
const bytesPerUnit = 3;
/** A tag and a length. */
const entryBytes = 8;

export function textBound(text = ''): number {
  return text.length * bytesPerUnit;
}

export function listBound(list: readonly string[] = []): number {
  return list.reduce((sum, entry) => sum + textBound(entry) + entryBytes, 0);
}

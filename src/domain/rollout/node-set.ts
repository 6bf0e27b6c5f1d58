/**
 * A set of a rollout's nodes, by their places in its list, as text: a bitmap in base64url without zeros at its end. So the sets
 * of 10,000 nodes are short in events and in a checkpoint.
 */
export type NodeSet = string;

export const noNodes: NodeSet = '';

const bytesOf = (set: NodeSet): Buffer => Buffer.from(set, 'base64url');

export function nodeSet(places: Iterable<number>, among: NodeSet = noNodes): NodeSet {
  const bytes = [...bytesOf(among)];
  for (const place of places) {
    const at = place >> 3;
    while (bytes.length <= at) bytes.push(0);
    bytes[at] = (bytes[at] ?? 0) | (1 << (place & 7));
  }
  return Buffer.from(bytes).toString('base64url');
}

/** The places in order. */
export function placesIn(set: NodeSet): readonly number[] {
  const places: number[] = [];
  for (const [at, byte] of bytesOf(set).entries()) {
    for (let bit = 0; bit < 8; bit += 1) if ((byte & (1 << bit)) !== 0) places.push(at * 8 + bit);
  }
  return places;
}

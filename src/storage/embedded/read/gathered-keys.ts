/**
 * Keys of index entries that wait to be written in order. Their bytes lie in one buffer: hundreds of thousands of strings that
 * are kept for long would have to be copied and marked by the garbage collector again and again. Part of `fill-indexes.ts`.
 */

export interface GatheredKeys {
  /**
   * Keeps the keys of one document.
   * @param heads what each of them begins with (`DocumentKeys.heads`)
   */
  add(keys: readonly string[], heads: readonly string[]): void;
  /** The bytes of all keys that are kept. */
  bytes(): number;
  /** Takes all keys, in order, in lists of those with the same head. Nothing is kept then. */
  take(): Generator<readonly string[], void, void>;
}

const firstBytes = 64 * 1024;
/** A place is the offset of a key times this, plus its length. LMDB takes no longer keys. */
const longestKey = 2048;

/** All texts are latin-1. */
export function createGatheredKeys(): GatheredKeys {
  let buffer = Buffer.alloc(0);
  let used = 0;
  /** By head. Keys of one head are mostly made nearly in order, which their sorting makes use of. */
  let places = new Map<string, number[]>();

  function write(text: string): void {
    if (used + text.length > buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(firstBytes, 2 * buffer.length, used + text.length));
      buffer.copy(larger, 0, 0, used);
      buffer = larger;
    }
    used += buffer.write(text, used, 'latin1');
  }

  return {
    add(keys, heads) {
      let offset = used;
      // One text for all, because each write costs more than joining.
      write(keys.join(''));
      for (let at = 0; at < keys.length; at += 1) {
        const [key, head] = [keys[at] ?? '', heads[at] ?? ''];
        const place = offset * longestKey + key.length;
        const present = places.get(head);
        if (present === undefined) places.set(head, [place]);
        else present.push(place);
        offset += key.length;
      }
    },
    bytes: () => used,
    *take() {
      const taken = buffer;
      const heads = [...places].sort(([a], [b]) => (a < b ? -1 : 1));
      [buffer, used, places] = [Buffer.alloc(0), 0, new Map()];
      for (const [, ofHead] of heads) {
        const keys = ofHead.map((place) => {
          const start = Math.floor(place / longestKey);
          return taken.toString('latin1', start, start + (place % longestKey));
        });
        yield keys.sort();
      }
    },
  };
}

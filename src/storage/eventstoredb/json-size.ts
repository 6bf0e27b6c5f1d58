/**
 * Estimates how long a value is as JSON: counts characters instead of bytes, and neither escapes nor digits. Bounds
 * what is held in memory, where serialising each event again would cost too much. Pure.
 */
const numberChars = 8;
const wordChars = 5;

/** The approximate number of characters. */
export function jsonSize(value: unknown): number {
  switch (typeof value) {
    case 'string':
      return value.length + 2;
    case 'number':
      return numberChars;
    case 'object': {
      if (value === null) return wordChars;
      let size = 2;
      if (Array.isArray(value)) {
        for (const item of value) size += jsonSize(item) + 1;
        return size;
      }
      for (const [key, item] of Object.entries(value)) size += key.length + 4 + jsonSize(item);
      return size;
    }
    default:
      return wordChars;
  }
}

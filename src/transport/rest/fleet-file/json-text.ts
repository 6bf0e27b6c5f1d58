/**
 * Reads a document that is JSON, as `svcctl` sends it, a hundred times as fast as the same text as YAML. It judges nothing: what
 * could be a mistake is left to the reader of YAML, which says what is wrong and where.
 */
import { nameKey } from '../../../domain/resource/meta.js';

/** The value of a JSON text without a key that could stand twice; undefined for any other text. */
export function readJson(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return keysStandOnce(text) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** A key, with the colon behind it; another text; or a bracket. */
const tokens = /"([^"\\]*(?:\\.[^"\\]*)*)"(\s*:)?|[{}[\]]/g;

/** @param text valid JSON, of which `JSON.parse` has kept the last value of each key */
function keysStandOnce(text: string): boolean {
  const open: Set<string>[] = [];
  for (const [token, quoted = '', colon] of text.matchAll(tokens)) {
    if (token === '{' || token === '[') open.push(new Set());
    else if (token === '}' || token === ']') open.pop();
    else if (colon !== undefined) {
      const key = quoted.includes('\\') ? (JSON.parse(`"${quoted}"`) as string) : quoted;
      const keys = open.at(-1);
      const compared = nameKey(key);
      if (key === '__proto__' || key === '<<' || keys?.has(compared) === true) return false;
      keys?.add(compared);
    }
  }
  return true;
}

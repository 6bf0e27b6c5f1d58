/** A sentence in parts: words, and what a page shows as a link. Pure. */

export interface Ref {
  readonly type: 'node' | 'l4_chain' | 'route' | 'l3_network' | 'l4_upstream' | 'credential';
  readonly id: string;
  /** Null where the page looks it up. */
  readonly name: string | null;
}

export type Part = string | Ref;
export type Words = readonly Part[];

/** A template of words and parts. */
export function say(texts: TemplateStringsArray, ...values: readonly (Part | Words)[]): Words {
  return texts.flatMap((text, index) => {
    const value = values[index];
    return [text, ...(value === undefined ? [] : isPart(value) ? [value] : value)].filter((part) => part !== '');
  });
}

const isPart = (value: Part | Words): value is Part => !Array.isArray(value);

/** As text, with ids for what has no name. */
export const textOfWords = (words: Words): string =>
  words.map((part) => (typeof part === 'string' ? part : (part.name ?? part.id))).join('');

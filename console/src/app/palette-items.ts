/** What the palette offers for the typed text, in order. Pure. */

/** Something that can be chosen. */
export interface Item {
  readonly key: string;
  readonly label: string;
  /** What kind of thing it is. */
  readonly hint: string;
  /** Leaves the palette open, because the item only types text. */
  readonly staysOpen?: boolean;
  readonly run: () => void | Promise<void>;
}

/** Actions on the resource that the other words name: `deploy front`. */
const verbs = ['deploy', 'issue', 'rotate'] as const;
export type Verb = (typeof verbs)[number];

export interface Wanted {
  readonly verb: Verb | undefined;
  /** A part of a name, or an address. */
  readonly q: string;
  /** The port of a listener: `443`, `:443`, `0.0.0.0:443`. */
  readonly port: number | undefined;
}

/** @param typed the text of the field */
export function wantedOf(typed: string): Wanted {
  const [first = '', ...rest] = typed.trimStart().split(/\s+/);
  const verb = rest.length > 0 ? verbs.find((one) => one === first.toLowerCase()) : undefined;
  const q = (verb === undefined ? typed : rest.join(' ')).trim();
  const port = Number(/^(?:\S*:)?(\d{1,5})$/.exec(q)?.[1]);
  return { verb, q, port: verb === undefined && port >= 1 && port <= 65_535 ? port : undefined };
}

/**
 * Pages and actions that begin with the words; then resources, exact matches first; then pages and actions that contain
 * the words.
 */
export function inOrder(typed: string, own: readonly Item[], resources: readonly Item[]): readonly Item[] {
  const words = typed.trim().toLowerCase();
  const begins = ({ label }: Item): boolean => label.toLowerCase().startsWith(words);
  const has = (item: Item): boolean => !begins(item) && item.label.toLowerCase().includes(words);
  const isExact = ({ label }: Item): boolean => label.toLowerCase() === words;
  return [
    ...own.filter(begins),
    ...resources.filter(isExact),
    ...resources.filter((item) => !isExact(item)),
    ...own.filter(has),
  ];
}

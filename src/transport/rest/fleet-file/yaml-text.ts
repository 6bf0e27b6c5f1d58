/**
 * Reads a YAML text (1.2, core schema, includes JSON) in one pass over the parser's tree: its value, its mistakes, and the places
 * of mistakes that were found in its value. Strict: no duplicate keys, merge keys, custom tags or loops; depth, aliases and
 * expansion are bounded. Long sections are read in pieces, so the tree of the whole text never exists. Knows nothing of fleets.
 * Implements `docs/contract/automation.md#the-fleet-as-a-file`, the document.
 */
import {
  Composer,
  CST as tokens,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  Parser,
  type CST,
  type Document,
  type Node,
} from 'yaml';
import { limits } from '../../../kernel/limits.js';
import { canonicalKey } from '../../../kernel/json-text.js';
import { nameKey } from '../../../domain/resource/meta.js';
import { propertyPath } from '../schemas/json-path.js';
import type { Mistake } from '../schemas/validation.js';
import { tuning } from '../tuning.js';

/** A path into the value. */
export type Path = readonly PropertyKey[];

export interface ReadText {
  readonly value: unknown;
  /** The first mistakes as `line:column path: sentence`, in the order of the text; with any, the value is incomplete. */
  readonly mistakes: readonly string[];
}

/** A mistake at an offset of the text. */
interface Found {
  readonly offset: number;
  readonly at: Path;
  readonly message: string;
}

/** Bound of gathered mistakes; far more than are shown, so that the first in the text are among them. */
const gathered = 1_000;

const { fleetFile } = limits;
const { entryTokens, values: mostValues } = tuning.documentTexts;

const options = {
  version: '1.2',
  schema: 'core',
  merge: false,
  // The parser's check is quadratic; `mapping` looks keys up.
  uniqueKeys: false,
  stringKeys: false,
  prettyErrors: false,
} as const;

/** Thrown to stop reading when the reason is noted. */
class Stopped extends Error {}

/**
 * @param caseless keys of the document whose mappings need keys that differ in more than case
 * @param asked mistakes in the value of an earlier read, whose places are to be found
 * @param pieceTokens how much is parsed before complete entries of a section are read and dropped
 */
export function readYaml(
  text: string,
  caseless: readonly string[],
  asked: readonly Mistake[] = [],
  pieceTokens: number = tuning.documentTexts.pieceTokens,
): ReadText {
  const found: Found[] = [];
  const places = placesOf(asked);
  const note = (offset: number, at: Path, message: string): void => {
    if (found.length < gathered) found.push({ offset, at, message });
  };
  const stop = (offset: number, at: Path, message: string): never => {
    // The reason for stopping is always reported.
    found.push({ offset, at, message });
    throw new Stopped();
  };
  const values = createValues(text.length, caseless, { note, stop });
  let value: unknown;
  try {
    const document = readDocument(text, values, places, { note, stop }, pieceTokens);
    // After a syntax error, later mistakes would mislead.
    if (found.length === 0) value = values.read(document?.contents, [], places);
  } catch (error) {
    if (!(error instanceof Stopped)) throw error;
  }
  for (const mistake of asked) found.push(placed(mistake, places));
  return { value, mistakes: sentences(text, found) };
}

interface Notes {
  note(offset: number, at: Path, message: string): void;
  stop(offset: number, at: Path, message: string): never;
}

/** The tree of a text, without the entries of sections that were read while it was parsed. */
function readDocument(
  text: string,
  values: Values,
  places: Place,
  { note, stop }: Notes,
  pieceTokens: number,
): Document | undefined {
  const parser = new Parser();
  const composer = new Composer(options);
  const documents: Document[] = [];
  const kept = new WeakSet<object>();
  let ofStream = 0;
  let inOnePiece = false;
  let aliases = 0;
  let unread = 0;
  let scalarNext = false;

  const take = (token: CST.Token): void => {
    if (token.type === 'document') ofStream += 1;
    if (ofStream > 1) stop(token.offset, [], 'expected YAML: one document');
    // Directives change the meaning of tags.
    if (token.type === 'directive') inOnePiece = true;
    if (token.type === 'error') note(token.offset, [], sentenceOf(token.message));
    else documents.push(...composer.next(token));
  };

  for (const lexeme of new Lexer().lex(text)) {
    for (const token of parser.next(lexeme)) take(token);
    const { stack, offset } = parser;
    const nested = stack.length - (tokens.isCollection(stack.at(-1)) ? 1 : 2);
    if (nested > fleetFile.nesting) stop(offset, [], tooDeep);
    const type: CST.TokenType | null = scalarNext ? null : tokens.tokenType(lexeme);
    scalarNext = type === 'scalar';
    if (type === 'alias' && (aliases += 1) > fleetFile.aliases) {
      stop(offset, [], `expected at most ${fleetFile.aliases} aliases`);
    }
    unread += 1;
    if (unread < pieceTokens || inOnePiece) continue;
    if (readPiece(stack, values, places, note, kept)) unread = 0;
    else if (unread > entryTokens) stop(offset, [], `expected at most ${entryTokens} words and signs in one entry`);
  }
  for (const token of parser.end()) take(token);
  documents.push(...composer.end(true, text.length));
  for (const { errors } of documents) {
    for (const { pos, message } of errors) note(pos[0], [], sentenceOf(message));
  }
  return documents[0];
}

export const tooDeep = `expected at most ${fleetFile.nesting} mappings and lists inside each other`;

/** The parser's message without the lines that it quotes: they may hold a secret. */
function sentenceOf(message: string): string {
  const [first = ''] = message.split('\n');
  return `expected YAML: ${first.replace(/"[^"]*"/g, '"…"').replace(/^(Not a YAML token): .*/, '$1')}`;
}

/**
 * Reads the complete entries of the section that is being parsed and removes them from the parser's tree. Reads everything
 * before the section first, because entries may refer to its anchors.
 * @param stack the parser's: the document, its mapping, then the mapping or list of a section
 * @param kept entries of the tree that were read already
 */
function readPiece(
  stack: readonly CST.Token[],
  values: Values,
  places: Place,
  note: Notes['note'],
  kept: WeakSet<object>,
): boolean {
  const [document, whole, section] = stack;
  if (document?.type !== 'document' || hasProperties(document.start)) return false;
  if (!tokens.isCollection(whole) || whole.type === 'block-seq' || !tokens.isCollection(section)) return false;
  const { key, sep = [] } = whole.items.at(-1) ?? {};
  if (!tokens.isScalar(key) || hasProperties(sep)) return false;
  const name = tokens.resolveAsScalar(key, true, (offset, _, message) => note(offset, [], sentenceOf(message))).value;
  const before = takenFrom(whole, kept, note);
  if (before !== undefined) values.read(before, [], places);
  const entries = takenFrom(section, kept, note);
  if (entries !== undefined) values.read(entries, [name], places.inside?.get(name));
  return entries !== undefined;
}

/** The new complete entries of a collection that is being parsed, as a tree of their own; undefined if there are none. */
function takenFrom(
  collection: CST.BlockMap | CST.BlockSequence | CST.FlowCollection,
  kept: WeakSet<object>,
  note: Notes['note'],
): Node | null | undefined {
  const complete = collection.items.slice(0, -1);
  if (complete.every((entry) => kept.has(entry))) return undefined;
  // The last complete entry stays as the first of the next piece, without its comma, so that its separator is checked there.
  collection.items.splice(0, complete.length - 1);
  const [first] = collection.items;
  const { offset } = collection;
  if (first !== undefined) {
    // Without a token before it, the parser places an entry at the start of its collection.
    const begin: CST.SourceToken = { type: 'space', offset: first.key?.offset ?? offset, indent: 0, source: '' };
    collection.items[0] = { ...first, start: [begin, ...first.start.filter(({ type }) => type !== 'comma')] };
    kept.add(collection.items[0]);
  }
  const isList = collection.type === 'flow-collection' && collection.start.source === '[';
  const end: CST.SourceToken[] =
    collection.type === 'flow-collection'
      ? [{ ...collection.start, type: 'flow-map-end', source: isList ? ']' : '}' }]
      : [];
  const value = { ...collection, items: isList ? complete.map(listEntry) : complete, end } as CST.Token;
  const [piece] = new Composer(options).compose([{ type: 'document', offset, start: [], value }]);
  for (const { pos, message } of piece?.errors ?? []) note(pos[0], [], sentenceOf(message));
  return piece?.contents;
}

type Entry = CST.FlowCollection['items'][number];

/** Until a list in brackets is complete, the parser takes its last entry for a key. */
function listEntry(entry: Entry): Entry {
  const { start, key, sep, value } = entry;
  const isPair = [...start, ...(sep ?? [])].some(({ type }) => type === 'explicit-key-ind' || type === 'map-value-ind');
  if (!key || !sep || value || isPair) return entry;
  const behind = 'end' in key ? (key.end ?? []) : [];
  return { start, value: { ...key, end: [...behind, ...sep] } as CST.Token };
}

/** Whether anchors or tags are among the tokens. */
const hasProperties = (list: readonly CST.SourceToken[]): boolean =>
  list.some(({ type }) => type === 'anchor' || type === 'tag');

interface Values {
  /** The value of a node. @param place the wanted places inside it */
  read(node: unknown, at: Path, place: Place | undefined): unknown;
}

/** The part of a section from earlier pieces. */
interface Part {
  readonly entries: Record<string, unknown>;
  readonly list: unknown[];
  /** Keys by their form for comparison. */
  readonly seen: Map<string, string>;
  /** Offset of the last entry that was read. */
  last: number;
}

function createValues(chars: number, caseless: readonly string[], { note, stop }: Notes): Values {
  const bound = Math.max(10 * chars, fleetFile.expansionBytes);
  let expanded = 0;
  let values = 0;
  const anchors = new Map<string, Node>();
  const targets = new Map<Node, Node | undefined>();
  const open = new Set<Node>();
  const sections = new Map<number, Part>();
  let inAlias = 0;

  function grow(node: unknown, at: Path, by: number): void {
    expanded += by;
    values += 1;
    if (expanded > bound) stop(beginOf(node), at, `expected aliases that expand to at most ${bound} characters`);
    if (values > mostValues) stop(beginOf(node), at, `expected at most ${mostValues} values`);
  }

  function read(node: unknown, at: Path, place: Place | undefined): unknown {
    if (node === null || node === undefined) return null;
    if (isAlias(node)) return readAlias(node, at, place);
    const inner = node as Node & { readonly tag?: string; readonly anchor?: string };
    if (inner.anchor !== undefined && inAlias === 0) anchors.set(inner.anchor, inner);
    if (inner.tag !== undefined && !coreTags.has(inner.tag)) {
      return note(beginOf(node), at, 'expected no tag but those of the core schema');
    }
    if (isScalar(node)) {
      grow(node, at, typeof node.value === 'string' ? node.value.length + 1 : 1);
      return node.value;
    }
    grow(node, at, 1);
    // Aliases can nest deeper than the text does.
    if (at.length >= fleetFile.nesting) stop(beginOf(node), at, tooDeep);
    open.add(inner);
    try {
      if (isSeq(node)) return sequence(node, at, place);
      if (isMap(node)) return mapping(node, at, place);
      return note(beginOf(node), at, 'expected a value');
    } finally {
      open.delete(inner);
    }
  }

  function readAlias(node: Node & { readonly source: string }, at: Path, place: Place | undefined): unknown {
    // An alias refers to the last anchor of its name before it, even when it is read again inside another alias.
    const target = targets.has(node) ? targets.get(node) : anchors.get(node.source);
    targets.set(node, target);
    if (target === undefined) return note(beginOf(node), at, 'expected an alias of an anchor that stands before it');
    if (open.has(target)) return note(beginOf(node), at, 'expected no loop, this alias stands inside its own anchor');
    inAlias += 1;
    const value = read(target, at, place);
    inAlias -= 1;
    return value;
  }

  function partOf(node: Node, at: Path): Part {
    const inPieces = at.length <= 1 && inAlias === 0;
    const known = inPieces ? sections.get(beginOf(node)) : undefined;
    const section = known ?? { entries: {}, list: [], seen: new Map<string, string>(), last: -1 };
    if (inPieces) sections.set(beginOf(node), section);
    return section;
  }

  function sequence(node: Node & { readonly items: readonly unknown[] }, at: Path, place: Place | undefined): unknown {
    const state = partOf(node, at);
    for (const item of node.items) {
      if (beginOf(item) <= state.last) continue;
      state.last = beginOf(item);
      const index = state.list.length;
      const inside = place?.inside?.get(String(index));
      if (inside !== undefined) inside.value ??= beginOf(item);
      state.list.push(read(item, [...at, index], inside));
    }
    return state.list;
  }

  function mapping(
    node: Node & { readonly items: readonly { readonly key: unknown; readonly value?: unknown }[] },
    at: Path,
    place: Place | undefined,
  ): unknown {
    const state = partOf(node, at);
    const names = at.length === 1 && caseless.includes(String(at[0]));
    for (const { key: keyNode, value } of node.items) {
      const begin = beginOf(keyNode);
      if (begin <= state.last) continue;
      state.last = begin;
      const key = keyText(keyNode);
      if (key === undefined) {
        note(begin, at, 'expected text as a key');
        continue;
      }
      grow(keyNode, at, key.length);
      const where = [...at, key];
      if (isMergeKey(keyNode) || key === '__proto__') {
        note(begin, where, key === '<<' ? 'expected no merge key' : 'not a field of this document');
        continue;
      }
      const compared = names ? nameKey(key) : canonicalKey(key);
      const before = state.seen.get(compared);
      if (before !== undefined) note(begin, where, keyTwice(key, before));
      state.seen.set(compared, key);
      const inside = place?.inside?.get(key);
      if (inside !== undefined) {
        inside.key ??= begin;
        inside.value ??= value === null || value === undefined ? begin : beginOf(value);
      }
      state.entries[key] = read(value, where, inside);
    }
    return state.entries;
  }

  return { read };
}

export const keyTwice = (key: string, before: string): string =>
  `expected each key once${before === key ? '' : `, "${before}" is the same`}`;

const beginOf = (node: unknown): number => (node as Node | null | undefined)?.range?.[0] ?? 0;

const coreTags: ReadonlySet<string> = new Set(
  ['str', 'int', 'float', 'bool', 'null', 'seq', 'map'].map((type) => `tag:yaml.org,2002:${type}`),
);

/** A plain key such as `8080` is text. */
function keyText(key: unknown): string | undefined {
  if (!isScalar(key)) return undefined;
  const { value, source } = key;
  if (typeof value === 'string') return value;
  return value === null ? undefined : (source ?? String(value));
}

/** A quoted `<<` is an ordinary key. */
const isMergeKey = (key: unknown): boolean => isScalar(key) && key.value === '<<' && key.type === 'PLAIN';

/** A wanted place, or one on the path to it; it has offsets once it is found. */
interface Place {
  key?: number;
  value?: number;
  inside?: Map<string, Place>;
}

function placesOf(asked: readonly Mistake[]): Place {
  const root: Place = { value: 0 };
  for (const { at } of asked) {
    let place = root;
    for (const key of at) {
      place.inside ??= new Map();
      const next: Place = place.inside.get(String(key)) ?? {};
      place.inside.set(String(key), next);
      place = next;
    }
  }
  return root;
}

/** The offset of a mistake: of its place, or of the nearest enclosing one in the text. */
function placed({ at, message, ofKey }: Mistake, root: Place): Found {
  let offset = root.value ?? 0;
  let place: Place | undefined = root;
  for (const [index, key] of at.entries()) {
    place = place.inside?.get(String(key));
    const begin = ofKey === true && index === at.length - 1 ? place?.key : place?.value;
    if (place === undefined || begin === undefined) break;
    offset = begin;
  }
  return { offset, at, message };
}

/** Sentences in the order of the text, without duplicates. */
function sentences(text: string, found: readonly Found[]): readonly string[] {
  const lines = new Set<string>();
  let line = 1;
  let lineBegin = 0;
  for (const { offset, at, message } of [...found].sort((a, b) => a.offset - b.offset)) {
    if (lines.size === fleetFile.mistakes) break;
    for (let next = text.indexOf('\n', lineBegin); next >= 0 && next < offset; next = text.indexOf('\n', lineBegin)) {
      line += 1;
      lineBegin = next + 1;
    }
    lines.add(`${line}:${offset - lineBegin + 1} ${sentence(at, message)}`);
  }
  return [...lines];
}

export const sentence = (at: Path, message: string): string =>
  `${propertyPath(at).replace(/^body$/, 'document')}: ${message}`;

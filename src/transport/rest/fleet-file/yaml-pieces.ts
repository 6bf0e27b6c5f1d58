/**
 * The tree of a YAML text. Long sections are read in pieces while they are parsed, so the tree of the whole text never exists.
 * Implements `docs/contract/automation.md#the-fleet-as-a-file`, the document.
 */
import { Composer, CST as tokens, Lexer, Parser, type CST, type Document, type Node } from 'yaml';
import { limits } from '../../../kernel/limits.js';
import { tuning } from '../tuning.js';
import type { Notes, Place } from './mistake-places.js';
import { tooDeep, type Values } from './yaml-values.js';

const { fleetFile } = limits;
const { entryTokens } = tuning.documentTexts;

const options = {
  version: '1.2',
  schema: 'core',
  merge: false,
  // The parser's check is quadratic; `mapping` looks keys up.
  uniqueKeys: false,
  stringKeys: false,
  prettyErrors: false,
} as const;

/** The tree of a text, without the entries of sections that were read while it was parsed. */
export function readDocument(
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

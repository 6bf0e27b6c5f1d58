/**
 * The documents of fleet files: read, merged by set, and sent as one text per set. Places in refusals are mapped back to the
 * files as written. Implements
 * `docs/contract/automation.md#the-fleet-as-a-file`.
 */
import { readFileSync } from 'node:fs';
import { LineCounter, isMap, isScalar, isSeq, parseAllDocuments, visit, type Document } from 'yaml';
import { utf8 } from '../ask.js';
import { refused, usage } from '../exit.js';

/** One YAML document of one file. */
interface Part {
  readonly file: string;
  readonly document: Document;
  readonly lines: LineCounter;
  /** The document as plain values. */
  readonly value: Readonly<Record<string, unknown>>;
}

export interface FleetDocument {
  /** Null for resources that no set owns. */
  readonly set: string | null;
  /** The text that is sent: JSON, which is also YAML. */
  readonly text: string;
  /** A refusal, with its places mapped to the files. */
  placed(sentence: string): string;
}

/** Changes values before they are sent. @param file the file that holds them */
export type Fill = (value: Readonly<Record<string, unknown>>, file: string) => Readonly<Record<string, unknown>>;

const defaultSet = 'default';

/** The documents of the files, one per set, in order of first appearance. @throws Failure */
export function readDocuments(files: readonly string[], fill: Fill): readonly FleetDocument[] {
  if (files.length === 0) throw usage('expected -f FILE');
  const parts = files.flatMap((file) => partsOf(file, files.length > 1));
  if (parts.length === 0) throw usage(`${files.join(', ')}: expected a document`);
  const bySet = new Map<unknown, Part[]>();
  for (const part of parts) {
    const set = part.value['set'] === undefined ? defaultSet : part.value['set'];
    bySet.set(set, [...(bySet.get(set) ?? []), part]);
  }
  return [...bySet].map(([set, ofSet]) => ({
    set: typeof set === 'string' ? set : null,
    text: JSON.stringify(merged(ofSet, fill)),
    placed: (sentence) => placed(sentence, ofSet, files.length > 1),
  }));
}

function partsOf(file: string, named: boolean): readonly Part[] {
  let bytes: Buffer;
  try {
    bytes = readFileSync(file === '-' ? 0 : file);
  } catch (error) {
    throw usage(`${file}: ${(error as Error).message}`);
  }
  const text = utf8(bytes, file);
  const lines = new LineCounter();
  // The parser's own check compares each key with all others of its mapping.
  const options = { version: '1.2', lineCounter: lines, prettyErrors: false, uniqueKeys: false } as const;
  const documents = parseAllDocuments(text, options);
  const parsed = 'empty' in documents ? [] : documents;
  const errors = parsed.flatMap((document) => [...document.errors, ...document.warnings, ...keyMistakes(document)]);
  if (errors.length > 0) {
    const sentences = errors.map(
      ({ pos: [at], message }) => `${placeAt(lines, at, named ? file : undefined)}${message}`,
    );
    throw refused(sentences.join('; '));
  }
  return parsed.map((document) => {
    const value = plainValue(document, file);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw refused(`${file}: expected a document that begins with svc: 1`);
    }
    return { file, document, lines, value: value as Record<string, unknown> };
  });
}

interface KeyMistake {
  readonly pos: readonly [number];
  readonly message: string;
}

/** Finds duplicate keys, and merge keys, which would be plain strings in JSON. */
function keyMistakes(document: Document): readonly KeyMistake[] {
  const found: KeyMistake[] = [];
  visit(document, {
    Map(_, { items }) {
      const seen = new Set<string>();
      for (const { key } of items) {
        if (!isScalar(key)) continue;
        const text = String(key.value);
        const pos = [rangeStart(key) ?? 0] as const;
        if (text === '<<' && key.type === 'PLAIN') found.push({ pos, message: 'expected no merge key' });
        if (seen.has(text)) found.push({ pos, message: 'Map keys must be unique' });
        seen.add(text);
      }
    },
  });
  return found;
}

/** The service's own limit. */
const mostAliases = 1_000;

/** @throws Failure for undefined aliases, or too many */
function plainValue(document: Document, file: string): unknown {
  try {
    return document.toJS({ maxAliasCount: mostAliases });
  } catch (error) {
    throw refused(`${file}: ${(error as Error).message}`);
  }
}

function placeAt(lines: LineCounter, offset: number, file: string | undefined): string {
  const { line, col } = lines.linePos(offset);
  return `${file === undefined ? '' : `${file}:`}${line}:${col}: `;
}

/** Merges the parts of one set: maps by name, lists by concatenation. @throws Failure for a name in two files */
function merged(parts: readonly Part[], fill: Fill): Readonly<Record<string, unknown>> {
  const whole: Record<string, unknown> = {};
  for (const { value, file } of parts) {
    for (const [section, content] of Object.entries(fill(value, file))) {
      const before = whole[section];
      if (before === undefined || before === null) whole[section] = content;
      else if (Array.isArray(before) && Array.isArray(content)) whole[section] = [...before, ...content];
      else if (isRecord(before) && isRecord(content)) {
        const twice = Object.keys(content).find((name) => Object.hasOwn(before, name));
        if (twice !== undefined) {
          throw refused(`${file}: ${section}.${twice}: it stands in another file of the set too`);
        }
        whole[section] = { ...before, ...content };
      } else if (before !== content && content !== null) {
        throw refused(`${file}: ${section}: another file of the set has another value`);
      }
    }
  }
  return whole;
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** `line:column path: sentence`, the form of each mistake; long documents have no line and column. */
const mistake = /^(?:\d+:\d+ )?([^\s:]+(?:\s[^\s:]+)*): (.*)$/s;

function placed(sentence: string, parts: readonly Part[], named: boolean): string {
  const [code = '', rest = ''] =
    /^(invalid_request: )?(.*)$/s
      .exec(sentence)
      ?.slice(1)
      .map((text) => text ?? '') ?? [];
  const told: string[] = [];
  for (const item of rest.split('; ')) {
    const [, path = '', what = ''] = mistake.exec(item) ?? [];
    const at = path === '' ? undefined : findPlace(parts, path, named);
    const before = told.length - 1;
    if (at !== undefined) told.push(`${at}${path}: ${what}`);
    else if (/^\d+:\d+ /.test(item)) told.push(item.replace(/^\d+:\d+ /, ''));
    // Not a mistake in the document, or the continuation of the previous sentence.
    else if (before < 0) return sentence;
    else told[before] += `; ${item}`;
  }
  return code + told.join('; ');
}

/** Finds the value of a path, in the file that has the most of it. */
function findPlace(parts: readonly Part[], path: string, named: boolean): string | undefined {
  let best: Place | undefined;
  let at: string | undefined;
  let own = path;
  for (const { document, lines, file, value } of parts) {
    const found = placeIn(document.contents, own);
    if (found !== undefined && (best === undefined || found.missing < best.missing)) {
      [best, at] = [found, placeAt(lines, found.offset, named ? file : undefined)];
    }
    // The lists of the files were joined.
    own = own.replace(/^(\w+)\[(\d+)\]/, (whole, section: string, index: string) => {
      const list = value[section];
      return Array.isArray(list) ? `${section}[${Number(index) - list.length}]` : whole;
    });
  }
  return at;
}

interface Place {
  readonly offset: number;
  /** How much of the path is not there: a missing value is reported at the key above it. */
  readonly missing: number;
}

/** Names may contain dots, so the longest match wins. */
function placeIn(node: unknown, path: string): Place | undefined {
  const offset = rangeStart(node);
  if (path === '') return offset === undefined ? undefined : { offset, missing: 0 };
  if (isMap(node)) {
    const fitting = node.items
      .map((pair) => ({ pair, key: isScalar(pair.key) ? String(pair.key.value) : '' }))
      .filter(({ key }) => path === key || path.startsWith(`${key}.`) || path.startsWith(`${key}[`))
      .sort((a, b) => b.key.length - a.key.length);
    for (const { pair, key } of fitting) {
      const rest = path.slice(key.length).replace(/^\./, '');
      const above = placeIn(pair.key, '');
      return rest === '' ? above : (placeIn(pair.value, rest) ?? (above && { ...above, missing: rest.length }));
    }
  }
  const [, index = '', rest = ''] = /^\[(\d+)\]\.?(.*)$/.exec(path) ?? [];
  return isSeq(node) && index !== '' ? placeIn(node.items[Number(index)], rest) : undefined;
}

function rangeStart(node: unknown): number | undefined {
  const range = typeof node === 'object' && node !== null && 'range' in node ? node.range : undefined;
  return Array.isArray(range) && typeof range[0] === 'number' ? range[0] : undefined;
}

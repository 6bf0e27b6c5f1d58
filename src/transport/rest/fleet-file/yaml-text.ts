/**
 * Reads a YAML text (1.2, core schema; JSON is YAML) as a plain value, and finds the line and column of any place in it.
 * Strict: no key twice, no merge keys, no tags of its own, no loops, and no expansion far beyond the text. Knows nothing
 * of fleets. Implements `docs/contract/automation.md#the-fleet-as-a-file`, the document.
 */
import type { Document, Node, Scalar } from 'yaml';
import { isAlias, isMap, isPair, isScalar, isSeq, LineCounter, parseDocument } from 'yaml';
import { nameKey } from '../../../domain/resource/meta.js';
import { limits } from '../../../kernel/limits.js';
import { propertyPath } from '../checks/json-path.js';
import type { Mistake } from '../checks/validation.js';

/** A place in the value. */
export type Path = readonly PropertyKey[];

export interface YamlText {
  readonly value: unknown;
  /** `line:column path: sentence`, in the order of the text, at most as many as are shown. */
  readonly mistakes: readonly string[];
  /** Sentences about places, in the order of the text. */
  sentences(mistakes: readonly Mistake[]): readonly string[];
}

interface Found {
  readonly offset: number;
  readonly at: Path;
  readonly message: string;
}

/** @param caseless keys whose mappings have keys that may not differ by case alone */
export function readYaml(text: string, caseless: readonly string[]): YamlText {
  const lines = new LineCounter();
  const document = parseDocument(text, {
    version: '1.2',
    schema: 'core',
    merge: false,
    uniqueKeys: false,
    prettyErrors: false,
    stringKeys: false,
    // Silence would hide that there are several documents.
    logLevel: 'error',
    lineCounter: lines,
  });
  const found: Found[] = [];
  const sentence = ({ offset, at, message }: Found): string => {
    const { line, col } = lines.linePos(offset);
    return `${line}:${col} ${propertyPath(at).replace(/^body$/, 'document')}: ${message}`;
  };
  for (const { pos, message } of document.errors) found.push({ offset: pos[0], at: [], message: inOneLine(message) });
  const value = document.errors.length > 0 ? undefined : plainValue(document, text.length, caseless, found);
  const inOrder = (all: readonly Found[]): readonly string[] =>
    [...all].sort((a, b) => a.offset - b.offset).map(sentence);
  return {
    value,
    mistakes: inOrder(found).slice(0, limits.fleetFile.mistakes),
    sentences: (mistakes) =>
      inOrder(
        mistakes.map(({ at, message, ofKey = false }) => ({ offset: offsetOf(document, at, ofKey), at, message })),
      ),
  };
}

/** Messages of the parser may quote lines of the text, which may hold a secret. */
function inOneLine(message: string): string {
  const [first = ''] = message.split('\n');
  return `expected YAML: ${first.replace(/"[^"]*"/g, '"…"')}`;
}

/** Thrown when the text stands for much more than it is. */
class TooMuch extends Error {}

function plainValue(document: Document.Parsed, length: number, caseless: readonly string[], found: Found[]): unknown {
  const bound = Math.max(10 * length, limits.fleetFile.expansionBytes);
  let expanded = 0;
  const open = new Set<Node>();
  const offset = (node: unknown): number => (node as Node | null | undefined)?.range?.[0] ?? 0;
  const note = (node: unknown, at: Path, message: string): undefined => {
    if (found.length < 1000) found.push({ offset: offset(node), at, message });
  };
  const grow = (by: number): void => {
    expanded += by;
    if (expanded > bound) throw new TooMuch();
  };

  function read(node: unknown, at: Path): unknown {
    if (node === null || node === undefined) return null;
    if (isAlias(node)) {
      const target = node.resolve(document);
      if (target === undefined) return note(node, at, 'expected an alias of an anchor that stands before it');
      if (open.has(target)) return note(node, at, 'expected no loop, this alias stands inside its own anchor');
      return read(target, at);
    }
    const inner = node as Node & { readonly tag?: string };
    if (inner.tag !== undefined && !coreTags.has(inner.tag)) {
      return note(node, at, 'expected no tag but those of the core schema');
    }
    grow(1);
    if (isScalar(node)) {
      if (typeof node.value === 'string') grow(node.value.length);
      return node.value;
    }
    open.add(inner);
    try {
      if (isSeq(node)) return node.items.map((item, index) => read(item, [...at, index]));
      if (isMap(node)) return mapping(node.items, at);
      return note(node, at, 'expected a value');
    } finally {
      open.delete(inner);
    }
  }

  function mapping(items: readonly unknown[], at: Path): unknown {
    const result: Record<string, unknown> = {};
    const seen = new Map<string, string>();
    for (const item of items) {
      if (!isPair(item)) continue;
      const key = keyText(item.key);
      if (key === undefined) {
        note(item.key, at, 'expected text as a key');
        continue;
      }
      grow(key.length);
      const where = [...at, key];
      if (key === '<<' || key === '__proto__') {
        note(item.key, where, key === '<<' ? 'expected no merge key' : 'not a field of this document');
        continue;
      }
      const compared = at.length === 1 && caseless.includes(String(at[0])) ? nameKey(key) : key.normalize('NFC');
      const before = seen.get(compared);
      if (before !== undefined) {
        note(item.key, where, `expected each key once${before === key ? '' : `, "${before}" is the same`}`);
      }
      seen.set(compared, key);
      result[key] = read(item.value, where);
    }
    return result;
  }

  try {
    return read(document.contents, []);
  } catch (error) {
    if (!(error instanceof TooMuch)) throw error;
    return note(document.contents, [], `expected aliases that expand to at most ${bound} characters`);
  }
}

const coreTags: ReadonlySet<string> = new Set(
  ['str', 'int', 'float', 'bool', 'null', 'seq', 'map'].map((type) => `tag:yaml.org,2002:${type}`),
);

/** A plain key such as `8080` is the text as it stands. */
function keyText(key: unknown): string | undefined {
  if (!isScalar(key)) return undefined;
  const { value, source } = key as Scalar & { readonly source?: string };
  if (typeof value === 'string') return value;
  return value === null ? undefined : (source ?? String(value));
}

/** Where a place begins; the nearest one above it that the text has. */
function offsetOf(document: Document.Parsed, at: Path, ofKey: boolean): number {
  let node: unknown = document.contents;
  let offset = (node as Node | null)?.range?.[0] ?? 0;
  for (const [index, key] of at.entries()) {
    if (isAlias(node)) node = node.resolve(document);
    let next: unknown;
    if (isSeq(node) && typeof key === 'number') next = node.items[key];
    else if (isMap(node)) {
      const pair = node.items.find((item) => keyText(item.key) === String(key));
      const wantsKey = ofKey && index === at.length - 1;
      next = wantsKey || pair?.value === null ? pair?.key : pair?.value;
    }
    if (next === undefined || next === null) break;
    node = next;
    offset = (node as Node).range?.[0] ?? offset;
  }
  return offset;
}

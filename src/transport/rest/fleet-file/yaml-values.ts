/**
 * The value of a YAML tree, whole or in pieces. Strict: no duplicate keys, merge keys, custom tags or loops; depth, aliases and
 * expansion are bounded. Implements `docs/contract/automation.md#the-fleet-as-a-file`, the document.
 */
import { isAlias, isMap, isScalar, isSeq, type Node } from 'yaml';
import { nameKey } from '../../../domain/resource/meta.js';
import { nfc } from '../../../kernel/compare-text.js';
import { limits } from '../../../kernel/limits.js';
import { tuning } from '../tuning.js';
import type { Notes, Path, Place } from './mistake-places.js';

const { fleetFile } = limits;
const { values: mostValues } = tuning.documentTexts;

export const tooDeep = `expected at most ${fleetFile.nesting} mappings and lists inside each other`;

export interface Values {
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

export function createValues(chars: number, caseless: readonly string[], { note, stop }: Notes): Values {
  const grow = boundedGrowth(Math.max(10 * chars, fleetFile.expansionBytes), stop);
  const anchors = new Map<string, Node>();
  const targets = new Map<Node, Node | undefined>();
  const open = new Set<Node>();
  const partOf = createPartOf();
  let inAlias = 0;

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

  function sequence(node: Node & { readonly items: readonly unknown[] }, at: Path, place: Place | undefined): unknown {
    const state = partOf(node, at.length <= 1 && inAlias === 0);
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
    const state = partOf(node, at.length <= 1 && inAlias === 0);
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
      const compared = names ? nameKey(key) : nfc(key);
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

/** @returns the part of a mapping or list that was read before, which only a section has, and only outside of an alias */
function createPartOf(): (node: Node, mayBeInPieces: boolean) => Part {
  const sections = new Map<number, Part>();
  return (node, mayBeInPieces) => {
    const known = mayBeInPieces ? sections.get(beginOf(node)) : undefined;
    const section = known ?? { entries: {}, list: [], seen: new Map<string, string>(), last: -1 };
    if (mayBeInPieces) sections.set(beginOf(node), section);
    return section;
  };
}

/** @returns counts a value, of so many characters, towards the bounds of the text */
function boundedGrowth(bound: number, stop: Notes['stop']): (node: unknown, at: Path, by: number) => void {
  let expanded = 0;
  let values = 0;
  return (node, at, by) => {
    expanded += by;
    values += 1;
    if (expanded > bound) stop(beginOf(node), at, `expected aliases that expand to at most ${bound} characters`);
    if (values > mostValues) stop(beginOf(node), at, `expected at most ${mostValues} values`);
  };
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

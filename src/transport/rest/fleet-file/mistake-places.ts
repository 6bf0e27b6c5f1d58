/** Mistakes of a document, and their places in its text. Implements `docs/contract/automation.md#the-fleet-as-a-file`, the document. */
import { limits } from '../../../kernel/limits.js';
import { propertyPath } from '../schemas/json-path.js';
import type { Mistake } from '../schemas/validation.js';

/** A path into the value. */
export type Path = readonly PropertyKey[];

/** A mistake at an offset of the text. */
export interface Found {
  readonly offset: number;
  readonly at: Path;
  readonly message: string;
}

export interface Notes {
  note(offset: number, at: Path, message: string): void;
  stop(offset: number, at: Path, message: string): never;
}

/** A wanted place, or one on the path to it; it has offsets once it is found. */
export interface Place {
  key?: number;
  value?: number;
  inside?: Map<string, Place>;
}

export function placesOf(asked: readonly Mistake[]): Place {
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
export function placed({ at, message, ofKey }: Mistake, root: Place): Found {
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
export function sentences(text: string, found: readonly Found[]): readonly string[] {
  const lines = new Set<string>();
  let line = 1;
  let lineBegin = 0;
  for (const { offset, at, message } of [...found].sort((a, b) => a.offset - b.offset)) {
    if (lines.size === limits.fleetFile.mistakes) break;
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

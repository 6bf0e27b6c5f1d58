/**
 * Reads a YAML text (1.2, core schema, includes JSON) in one pass: its value (`yaml-values.ts`) from the parser's tree
 * (`yaml-pieces.ts`), its mistakes, and the places of mistakes that were found in its value. Knows nothing of fleets.
 * Implements `docs/contract/automation.md#the-fleet-as-a-file`, the document.
 */
import type { Mistake } from '../schemas/validation.js';
import { tuning } from '../tuning.js';
import { placed, placesOf, sentences, type Found, type Path } from './mistake-places.js';
import { readDocument } from './yaml-pieces.js';
import { createValues } from './yaml-values.js';

export interface ReadText {
  readonly value: unknown;
  /** The first mistakes as `line:column path: sentence`, in the order of the text; with any, the value is incomplete. */
  readonly mistakes: readonly string[];
}

/** Bound of gathered mistakes; far more than are shown, so that the first in the text are among them. */
const gathered = 1_000;

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

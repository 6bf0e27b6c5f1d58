/**
 * A sentence as pieces: words of this service, and names, which may be anything that somebody typed or an agent said. A
 * format shows names so that they cannot act: see `formats.ts`. Implements `docs/contract/notices.md#webhooks-for-people`,
 * "names".
 */
import { onOneLine } from '../kernel/one-line.js';

export type Piece = string | { readonly name: string };
export type Line = readonly Piece[];

/** Longer names are cut to this many characters. */
export const nameChars = 200;

/** A name or foreign text in a message: bounded, on one line, without backticks. */
export function nameOf(text: string): { readonly name: string } {
  const plain = onOneLine(text).replaceAll('`', "'");
  const chars = Array.from(plain.slice(0, 2 * nameChars + 1));
  return { name: chars.length > nameChars ? `${chars.slice(0, nameChars - 1).join('')}…` : plain };
}

/** A word without anything that a chat could take for a link, a mention or markup. */
const plainWord = /^\(?\p{L}+[),.:;]*$/u;

/**
 * The pieces of a sentence of this service that quotes names, such as a reason. Anything that is not certainly a word
 * of the service counts as a name.
 */
export function piecesOf(sentence: string): Line {
  const pieces: Piece[] = [];
  const add = (piece: Piece): void => {
    const last = pieces.at(-1);
    if (typeof piece === 'string' && typeof last === 'string') pieces[pieces.length - 1] = last + piece;
    else pieces.push(piece);
  };
  for (const [index, part] of sentence.split('"').entries()) {
    if (index % 2 === 1) add(nameOf(part));
    else for (const word of part.split(/( +)/)) if (word !== '') add(isPlain(word) ? word : nameOf(word));
  }
  return pieces;
}

const isPlain = (word: string): boolean => plainWord.test(word) || /^ +$/.test(word) || /^[),.:;]+$/.test(word);

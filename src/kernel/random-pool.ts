/**
 * Random bytes in pieces of one length, drawn many at once: a call of the generator for each piece costs more than what is
 * done with it. For ids and nonces, not for keys: the pieces of a draw share memory, which nobody wipes.
 */
import { randomBytes } from 'node:crypto';

/**
 * @param pieceBytes of one piece
 * @param pieces of one draw
 * @returns a function that gives the next piece, which nobody else gets
 */
export function createRandomPool(pieceBytes: number, pieces: number): () => Buffer {
  let drawn = Buffer.alloc(0);
  let used = 0;
  return () => {
    if (used === drawn.length) {
      drawn = randomBytes(pieceBytes * pieces);
      used = 0;
    }
    used += pieceBytes;
    return drawn.subarray(used - pieceBytes, used);
  };
}

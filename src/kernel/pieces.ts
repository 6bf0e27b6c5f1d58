/**
 * Long work in pieces: a generator that yields where other work may run on the event loop. The caller decides whether
 * it pauses there. Implements `docs/contract/domain.md#scale-the-model-is-built-for`.
 */
import { yieldToEventLoop } from './background.js';

/** Runs all pieces without a pause. */
export function runSync<R>(pieces: Generator<void, R>): R {
  for (;;) {
    const step = pieces.next();
    if (step.done === true) return step.value;
  }
}

/** Runs the pieces, and lets everything else run between two of them. */
export async function withPauses<R>(pieces: Generator<void, R>): Promise<R> {
  for (;;) {
    const step = pieces.next();
    if (step.done === true) return step.value;
    await yieldToEventLoop();
  }
}

/** Handles each item, in groups of a fixed size. */
export function* forEach<T>(
  items: Iterable<T>,
  perPiece: number,
  visit: (item: T, index: number) => void,
): Generator<void, void> {
  let index = 0;
  for (const item of items) {
    visit(item, index);
    index += 1;
    if (index % perPiece === 0) yield;
  }
}

/** Wraps the result of work too short to pause in. */
export function* atOnce<R>(result: R): Generator<void, R> {
  yield* [];
  return result;
}

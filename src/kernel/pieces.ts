/**
 * Long work in pieces: a generator that yields where everything else may have its turn of the event loop. Who runs it
 * decides whether it pauses there. Implements `docs/contract/domain.md#scale-the-model-is-built-for`.
 */
import { yieldToEventLoop } from './background.js';

/** The result of what is done in pieces, without a pause. */
export function withoutPause<R>(pieces: Generator<void, R>): R {
  for (;;) {
    const step = pieces.next();
    if (step.done === true) return step.value;
  }
}

/** The result, with a turn for everything else between two pieces. */
export async function withPauses<R>(pieces: Generator<void, R>): Promise<R> {
  for (;;) {
    const step = pieces.next();
    if (step.done === true) return step.value;
    await yieldToEventLoop();
  }
}

/** Does the same to each item, so many at a time. */
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

/** The result of work that is short: there is nothing to pause in. */
export function* atOnce<R>(result: R): Generator<void, R> {
  yield* [];
  return result;
}

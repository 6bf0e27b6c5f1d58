/** Long work on committed state, in pieces between which everything else goes on. */
import type { Cell } from '../domain/aggregate/containers.js';
import { yieldToEventLoop } from '../kernel/background.js';
import { tuning } from './tuning.js';

/**
 * The result of pieces that saw one state, which stayed the same meanwhile: they begin anew when it changes, and at last run
 * without a pause.
 */
export async function inPieces<S extends { readonly revision: Cell<number> }, R>(
  committed: () => S,
  pieces: (state: S) => Generator<void, R>,
): Promise<R> {
  for (let attempt = 1; ; attempt += 1) {
    const state = committed();
    const revision = state.revision.value;
    const running = pieces(state);
    for (;;) {
      const step = running.next();
      if (step.done === true) return step.value;
      if (attempt < tuning.fileAttempts) await yieldToEventLoop();
      if (committed() !== state || state.revision.value !== revision) break;
    }
    // What they hold open ends.
    running.return(undefined as never);
  }
}

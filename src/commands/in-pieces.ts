/** Long work on the committed fleet, in pieces between which everything else goes on. */
import type { Fleet } from '../domain/fleet/fleet.js';
import { yieldToEventLoop } from '../kernel/background.js';
import { tuning } from './tuning.js';

/**
 * The result of pieces that saw one fleet, which stayed the same meanwhile: they begin anew when it changes, and at last run
 * without a pause.
 * @param committed the committed fleet
 */
export async function inPieces<R>(committed: () => Fleet, pieces: (fleet: Fleet) => Generator<void, R>): Promise<R> {
  for (let attempt = 1; ; attempt += 1) {
    const fleet = committed();
    const revision = fleet.revision.value;
    const running = pieces(fleet);
    for (;;) {
      const step = running.next();
      if (step.done === true) return step.value;
      if (attempt < tuning.fileAttempts) await yieldToEventLoop();
      if (committed() !== fleet || fleet.revision.value !== revision) break;
    }
  }
}

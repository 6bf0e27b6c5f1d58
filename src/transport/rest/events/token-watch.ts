/**
 * Ends streams and long requests soon after their token: checks every second, in memory, whether each token still
 * authenticates. Implements `docs/contract/automation.md#event-feed`.
 */
import type { Caller } from '../../../commands/accounts-port.js';
import { tuning } from '../tuning.js';

export interface TokenWatch {
  /** @param ended is called when the caller's token has ended @returns how to stop watching */
  watch(caller: Caller, ended: () => void): () => void;
  close(): void;
}

export function watchTokens(): TokenWatch {
  const uses = new Set<{ readonly caller: Caller; readonly ended: () => void }>();
  const look = (): void => {
    for (const { caller, ended } of uses) if (caller.ended()) ended();
  };
  const timer = setInterval(look, tuning.events.tokensEveryMs).unref();
  return {
    watch(caller, ended) {
      const use = { caller, ended };
      uses.add(use);
      return () => void uses.delete(use);
    },
    close: () => clearInterval(timer),
  };
}

/**
 * Ends what a token has opened soon after the token itself: asks every second whether those in use still authenticate, which
 * costs a look into memory for each. Implements `docs/contract/automation.md#event-feed`.
 */
import type { FastifyRequest } from 'fastify';
import type { CommandHandlers } from '../../../commands/handlers-port.js';
import { bearerToken } from '../checks/gate.js';
import { tuning } from '../tuning.js';

export interface TokenWatch {
  /** @param ended is called when the request's token has ended @returns how to stop watching */
  watch(request: FastifyRequest, ended: () => void): () => void;
  close(): void;
}

type Authenticate = CommandHandlers['accounts']['authenticate'];

export function watchTokens(authenticate: Authenticate): TokenWatch {
  const inUse = new Map<string, Set<() => void>>();
  const look = (): void => {
    for (const [token, uses] of inUse) {
      const caller = authenticate(token);
      // It has authenticated before: what needs a further look into the log has ended.
      if (caller !== undefined && !(caller instanceof Promise)) continue;
      for (const ended of uses) ended();
    }
  };
  const timer = setInterval(look, tuning.events.tokensEveryMs).unref();
  return {
    watch({ headers }, ended) {
      const token = bearerToken(headers.authorization) ?? '';
      const uses = inUse.get(token) ?? new Set();
      inUse.set(token, uses.add(ended));
      return () => {
        uses.delete(ended);
        if (uses.size === 0 && inUse.get(token) === uses) inUse.delete(token);
      };
    },
    close: () => clearInterval(timer),
  };
}

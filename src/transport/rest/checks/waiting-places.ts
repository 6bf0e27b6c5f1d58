/**
 * Places for deploys that wait until their nodes have applied, bounded for each user and in all: a waiting deploy polls
 * its nodes. Implements `docs/contract/rest.md#l4-chains` (`?wait=applied`).
 */
import { ServiceError } from '../../../kernel/errors.js';
import { tuning } from '../tuning.js';

export interface WaitingPlaces {
  /**
   * @returns gives the place back, once
   * @throws ServiceError `rate_limited` when all places are taken, before anything is written
   */
  take(userId: string): () => void;
  readonly taken: number;
}

export interface WaitingBounds {
  readonly inAll: number;
  readonly perUser: number;
}

export function createWaitingPlaces(bounds: WaitingBounds = tuning.waitingDeploys): WaitingPlaces {
  const byUser = new Map<string, number>();
  let taken = 0;
  return {
    get taken() {
      return taken;
    },
    take(userId) {
      const own = byUser.get(userId) ?? 0;
      if (own >= bounds.perUser) throw full(`at most ${bounds.perUser} deploys of one user wait at a time`);
      if (taken >= bounds.inAll) throw full(`at most ${bounds.inAll} deploys wait at a time`);
      byUser.set(userId, own + 1);
      taken += 1;
      let left = false;
      return () => {
        if (left) return;
        left = true;
        taken -= 1;
        const others = (byUser.get(userId) ?? 1) - 1;
        if (others === 0) byUser.delete(userId);
        else byUser.set(userId, others);
      };
    },
  };
}

function full(bound: string): ServiceError {
  return new ServiceError(
    'rate_limited',
    `wait: ${bound}; nothing was deployed: try again, or deploy without waiting`,
    {
      hints: { retryAfterSeconds: tuning.waitingRetrySeconds },
    },
  );
}

/**
 * Bounds long requests, for each user and in total: deploys that wait for their nodes, and streams of events. Implements
 * `docs/contract/rest.md#l4-chains` (`?wait=applied`) and `docs/contract/automation.md#event-feed`.
 */
import { ServiceError } from '../../../kernel/errors.js';
import { limits } from '../../../kernel/limits.js';
import type { WaitingPlaces } from '../deps.js';
import { tuning } from '../tuning.js';

export interface WaitingBounds {
  readonly inAll: number;
  readonly perUser: number;
}

export const createDeployPlaces = (bounds: WaitingBounds = tuning.waitingDeploys): WaitingPlaces =>
  createPlaces(
    bounds,
    (most, whose) =>
      `wait: at most ${most} deploys${whose} wait at a time; nothing was deployed: try again, or deploy without waiting`,
  );

export const createStreamPlaces = (): WaitingPlaces =>
  createPlaces(
    limits.feed.streams,
    (most, whose) => `at most ${most} streams of events${whose} are open at a time; close one, or try again later`,
  );

/** @param refusal the sentence for a request when all places are taken */
function createPlaces(bounds: WaitingBounds, refusal: (most: number, whose: string) => string): WaitingPlaces {
  const byUser = new Map<string, number>();
  let taken = 0;
  return {
    get taken() {
      return taken;
    },
    take(userId) {
      const own = byUser.get(userId) ?? 0;
      if (own >= bounds.perUser) throw full(refusal(bounds.perUser, ' of one user'));
      if (taken >= bounds.inAll) throw full(refusal(bounds.inAll, ''));
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

function full(sentence: string): ServiceError {
  return new ServiceError('rate_limited', sentence, { hints: { retryAfterSeconds: tuning.waitingRetrySeconds } });
}

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

/** Why a request is refused when all places are taken. */
interface FullSentences {
  perUser(bound: number): string;
  inAll(bound: number): string;
}

const deploySentence = (bound: string): string =>
  `wait: ${bound} at a time; nothing was deployed: try again, or deploy without waiting`;
const deploys: FullSentences = {
  perUser: (bound) => deploySentence(`at most ${bound} deploys of one user wait`),
  inAll: (bound) => deploySentence(`at most ${bound} deploys wait`),
};

const streamSentence = (bound: string): string => `${bound} are open at a time; close one, or try again later`;
const streams: FullSentences = {
  perUser: (bound) => streamSentence(`at most ${bound} streams of events of one user`),
  inAll: (bound) => streamSentence(`at most ${bound} streams of events`),
};

export function createDeployPlaces(bounds: WaitingBounds = tuning.waitingDeploys): WaitingPlaces {
  return createPlaces(bounds, deploys);
}

export function createStreamPlaces(bounds: WaitingBounds = limits.feed.streams): WaitingPlaces {
  return createPlaces(bounds, streams);
}

function createPlaces(bounds: WaitingBounds, sentences: FullSentences): WaitingPlaces {
  const byUser = new Map<string, number>();
  let taken = 0;
  return {
    get taken() {
      return taken;
    },
    take(userId) {
      const own = byUser.get(userId) ?? 0;
      if (own >= bounds.perUser) throw full(sentences.perUser(bounds.perUser));
      if (taken >= bounds.inAll) throw full(sentences.inAll(bounds.inAll));
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

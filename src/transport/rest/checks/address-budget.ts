/**
 * The request budget of a client address: a token bucket for each address, and 429 when it is empty. For what needs no
 * token. The budget of failed sign-ins is elsewhere (`src/security/login-limiter.ts`). Implements
 * `docs/contract/configuration.md#configuration`.
 */
import type { FastifyRequest } from 'fastify';
import { addressKey, plainIp } from '../../../kernel/addresses.js';
import type { Clock } from '../../../kernel/clock.js';
import { ServiceError } from '../../../kernel/errors.js';
import { createLru } from '../../../kernel/lru.js';
import { createTokenBucket } from '../../../kernel/token-bucket.js';
import type { TokenBucket } from '../../../kernel/token-bucket.js';
import { tuning } from '../tuning.js';

/** A hook of routes that takes one request from the budget of the address it comes from. */
export type Budget = (request: FastifyRequest) => Promise<void>;

interface AddressBudget {
  readonly perSecond: number;
  readonly burst: number;
}

/** @param what in the sentence of the refusal: "too many … from this address" */
export function createAddressBudget(
  { perSecond, burst }: AddressBudget,
  what: string,
  clock: Pick<Clock, 'monotonic'>,
): Budget {
  const buckets = createLru<string, TokenBucket>({ maxEntries: tuning.budgetAddresses });
  return async (request) => {
    const now = clock.monotonic();
    const bucket = buckets.getOrCreate(addressKey(plainIp(request.ip)), () => createTokenBucket(perSecond, burst, now));
    const waitMs = bucket.wait(now);
    if (waitMs > 0) {
      throw new ServiceError('rate_limited', `too many ${what} from this address; try again later`, {
        hints: { retryAfterSeconds: waitMs / 1000 },
      });
    }
    bucket.take(now);
  };
}

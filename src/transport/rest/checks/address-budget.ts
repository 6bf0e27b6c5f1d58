/**
 * A request budget for each client address, for routes without a token; 429 when it is spent. Failed sign-ins have their own
 * (`src/security/login-limiter.ts`). Implements `docs/contract/configuration.md#configuration`.
 */
import type { FastifyRequest } from 'fastify';
import { createAddressBuckets, type AddressBudget } from '../../../kernel/address-buckets.js';
import type { Clock } from '../../../kernel/clock.js';
import { ServiceError } from '../../../kernel/errors.js';
import { tuning } from '../tuning.js';

/** A hook that takes one request from the budget of the client's address. */
export type Budget = (request: FastifyRequest) => Promise<void>;

/** @param what in the sentence of the refusal: "too many … from this address" */
export function createAddressBudget(budget: AddressBudget, what: string, clock: Pick<Clock, 'monotonic'>): Budget {
  const buckets = createAddressBuckets(budget, tuning.budgetAddresses, clock);
  return async ({ ip }) => {
    const waitMs = buckets.take(ip);
    if (waitMs === 0) return;
    throw new ServiceError('rate_limited', `too many ${what} from this address; try again later`, {
      hints: { retryAfterSeconds: waitMs / 1000 },
    });
  };
}

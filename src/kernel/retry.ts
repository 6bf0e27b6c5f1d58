/**
 * How long to wait before the next attempt: exponential backoff with jitter, with its policy as a value. Each caller
 * decides what it retries and when it gives up.
 */
export interface RetryPolicy {
  /** The upper end of the first wait. It doubles with every further attempt. */
  readonly firstMs: number;
  /** The longest wait. */
  readonly maxMs: number;
}

/** For work that waits for a store: a short outage costs little time, a long one little load. */
export const storeRetry: RetryPolicy = { firstMs: 100, maxMs: 2_000 };

/** @returns milliseconds, between half and the whole of `firstMs * 2^attempt`, at most `maxMs`; attempts count from 0. */
export function backoff(policy: RetryPolicy, attempt: number, random: () => number = Math.random): number {
  const ceiling = Math.min(policy.maxMs, policy.firstMs * 2 ** Math.min(attempt, 30));
  return ceiling / 2 + (ceiling / 2) * random();
}

/**
 * One token bucket per client address; an IPv6 network shares one. Bounded: the least recently seen address is dropped
 * first. Implements `docs/contract/configuration.md#configuration`.
 */
import { addressKey } from './addresses.js';
import type { Clock } from './clock.js';
import { createLru } from './lru.js';
import { createTokenBucket, type TokenBucket } from './token-bucket.js';
import { getOrMake } from './maps.js';

export interface AddressBudget {
  readonly perSecond: number;
  readonly burst: number;
}

export interface AddressBuckets {
  /**
   * Takes tokens, one by default, from the bucket of the address.
   * @returns 0, or the milliseconds until enough tokens are available; then nothing is taken
   */
  take(address: string, tokens?: number): number;
  /** Returns tokens that were taken. */
  give(address: string): void;
}

export function createAddressBuckets(
  { perSecond, burst }: AddressBudget,
  maxEntries: number,
  clock: Pick<Clock, 'monotonic'>,
): AddressBuckets {
  const buckets = createLru<TokenBucket>(maxEntries);
  const bucketOf = (address: string, now: number): TokenBucket =>
    getOrMake(buckets, addressKey(address), () => createTokenBucket(perSecond, burst, now));
  return {
    take(address, tokens = 1) {
      const now = clock.monotonic();
      const bucket = bucketOf(address, now);
      const waitMs = bucket.wait(now, tokens);
      if (waitMs === 0) bucket.take(now, tokens);
      return waitMs;
    },
    give(address) {
      const now = clock.monotonic();
      bucketOf(address, now).give(now);
    },
  };
}

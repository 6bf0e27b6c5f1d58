/**
 * A token bucket: refills steadily up to its burst. Has no clock: `now` is passed in, in milliseconds. A caller that
 * learns the cost only afterwards may take more than there is, and waits until the debt is paid.
 */
export interface TokenBucket {
  /** Milliseconds until so many tokens are available, one by default; 0: now. With 0 tokens: until no debt is left. */
  wait(now: number, tokens?: number): number;
  /** Takes tokens, one by default, available or not. */
  take(now: number, tokens?: number): void;
  /** Returns one token. */
  give(now: number): void;
}

/** @param start the time at which it is full */
export function createTokenBucket(perSecond: number, burst: number, start: number): TokenBucket {
  let level = burst;
  let refilledAt = start;
  const refill = (now: number): void => {
    level = Math.min(burst, level + (Math.max(0, now - refilledAt) * perSecond) / 1000);
    refilledAt = now;
  };
  return {
    wait(now, tokens = 1) {
      refill(now);
      return level >= tokens ? 0 : ((tokens - level) * 1000) / perSecond;
    },
    take(now, tokens = 1) {
      refill(now);
      level -= tokens;
    },
    give(now) {
      refill(now);
      level = Math.min(burst, level + 1);
    },
  };
}

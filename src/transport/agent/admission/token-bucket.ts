/** A token bucket: refills steadily up to its burst. Has no clock: `now` is passed in, in milliseconds. */
export interface TokenBucket {
  /** Milliseconds until a whole token is available; 0: now. */
  wait(now: number): number;
  /** Takes one token, which must be available. */
  take(now: number): void;
  /** Returns one token. */
  give(now: number): void;
}

export function createTokenBucket(perSecond: number, burst: number, start: number): TokenBucket {
  let tokens = burst;
  let refilledAt = start;
  const refill = (now: number): void => {
    tokens = Math.min(burst, tokens + (Math.max(0, now - refilledAt) * perSecond) / 1000);
    refilledAt = now;
  };
  return {
    wait(now) {
      refill(now);
      return tokens >= 1 ? 0 : ((1 - tokens) * 1000) / perSecond;
    },
    take(now) {
      refill(now);
      tokens -= 1;
    },
    give(now) {
      refill(now);
      tokens = Math.min(burst, tokens + 1);
    },
  };
}

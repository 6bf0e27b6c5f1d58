/** A budget that refills by the second up to its burst. Pure but for its own counter; time comes in, in milliseconds. */
export interface TokenBucket {
  /** Milliseconds until a whole token is there; 0 now. */
  wait(now: number): number;
  /** Takes one token, which must be there. */
  take(now: number): void;
  /** Puts one back. */
  give(now: number): void;
}

export function createTokenBucket(perSecond: number, burst: number, start: number): TokenBucket {
  let tokens = burst;
  let at = start;
  const refill = (now: number): void => {
    tokens = Math.min(burst, tokens + (Math.max(0, now - at) * perSecond) / 1000);
    at = now;
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

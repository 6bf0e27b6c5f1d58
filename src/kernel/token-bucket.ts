/**
 * A token bucket: refills steadily up to its burst. It has no clock: `now` is passed in, in milliseconds. A caller that
 * learns the cost only afterwards may take more than there is, and then waits until the debt is paid.
 */
export interface TokenBucket {
  /** Milliseconds until this many tokens (default one) are available or, for 0, until no debt is left. */
  wait(now: number, tokens?: number): number;
  /** Takes tokens (default one), available or not. */
  take(now: number, tokens?: number): void;
  /** Returns one token. */
  give(now: number): void;
}

/** A class, because each node has six of them, and an object of functions would take 300 bytes more. */
class Bucket implements TokenBucket {
  readonly #perSecond: number;
  readonly #burst: number;
  #level: number;
  #refilledAt: number;

  constructor(perSecond: number, burst: number, start: number) {
    this.#perSecond = perSecond;
    this.#burst = burst;
    this.#level = burst;
    this.#refilledAt = start;
  }

  wait(now: number, tokens = 1): number {
    // The level only grows until `now`, so there is nothing to compute while it is high enough.
    if (this.#level >= tokens) return 0;
    this.#refill(now);
    return this.#level >= tokens ? 0 : ((tokens - this.#level) * 1000) / this.#perSecond;
  }
  take(now: number, tokens = 1): void {
    this.#refill(now);
    this.#level -= tokens;
  }
  give(now: number): void {
    this.#refill(now);
    this.#level = Math.min(this.#burst, this.#level + 1);
  }
  #refill(now: number): void {
    const gained = (Math.max(0, now - this.#refilledAt) * this.#perSecond) / 1000;
    this.#level = Math.min(this.#burst, this.#level + gained);
    this.#refilledAt = now;
  }
}

/** @param start the time at which the bucket is full */
export function createTokenBucket(perSecond: number, burst: number, start: number): TokenBucket {
  return new Bucket(perSecond, burst, start);
}

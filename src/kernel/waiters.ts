/** Waits for conditions that others bring about, each with a deadline, in no particular order. */
import { waitIn, type Waiting } from './background.js';

interface Waiters {
  /** True once the condition holds; false after `timeoutMs`, when too many are waiting already, or when closed. */
  until(condition: () => boolean, timeoutMs: number): Promise<boolean>;
  /** Checks every condition again. */
  look(): void;
  /** Answers false to all waits, and to later ones whose condition does not hold yet. */
  close(): void;
}

export function createWaiters(maxWaiting: number = Number.POSITIVE_INFINITY): Waiters {
  const waiting = new Set<Waiting<{ readonly condition: () => boolean }>>();
  let closed = false;
  return {
    until(condition, timeoutMs) {
      if (condition()) return Promise.resolve(true);
      if (closed || timeoutMs <= 0 || waiting.size >= maxWaiting) return Promise.resolve(false);
      return waitIn(waiting, { condition }, timeoutMs);
    },
    look() {
      for (const waiter of waiting) if (waiter.condition()) waiter.answer(true);
    },
    close() {
      closed = true;
      for (const waiter of waiting) waiter.answer(false);
    },
  };
}

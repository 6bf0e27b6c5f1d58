/** Waits for conditions that somebody else brings about, each with a deadline. Not a queue: order means nothing. */

export interface Waiters {
  /** True once the condition holds, false after `timeoutMs` or at the end. */
  until(condition: () => boolean, timeoutMs: number): Promise<boolean>;
  /** Looks at every condition again. */
  look(): void;
  /** Answers false to all, also to those that come later. */
  close(): void;
}

interface Waiter {
  readonly condition: () => boolean;
  answer(value: boolean): void;
}

export function createWaiters(): Waiters {
  const waiting = new Set<Waiter>();
  let closed = false;
  return {
    until(condition, timeoutMs) {
      if (condition()) return Promise.resolve(true);
      if (closed) return Promise.resolve(false);
      return new Promise((resolve) => {
        const waiter: Waiter = {
          condition,
          answer(value) {
            clearTimeout(timer);
            waiting.delete(waiter);
            resolve(value);
          },
        };
        const timer = setTimeout(() => waiter.answer(false), timeoutMs);
        waiting.add(waiter);
      });
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

/** Wakes waiting subscriptions after an append. Counts turns, so that no wake-up is missed; holds no events. */

export interface WakeUp {
  /** The number of the newest turn. Take it before reading, then wait for a later one. */
  turn(): number;
  notify(): void;
  /** Resolves when a turn after `turn` has come, the signal aborts, or this is closed. */
  after(turn: number, signal: AbortSignal): Promise<void>;
  closed(): boolean;
  close(): void;
}

export function createWakeUp(): WakeUp {
  let current = 0;
  let closed = false;
  const waiting = new Set<() => void>();
  const wakeAll = (): void => {
    const all = [...waiting];
    waiting.clear();
    for (const wake of all) wake();
  };
  return {
    turn: () => current,
    notify() {
      current += 1;
      wakeAll();
    },
    async after(turn, signal) {
      if (current > turn || closed || signal.aborted) return;
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          signal.removeEventListener('abort', wake);
          waiting.delete(wake);
          resolve();
        };
        waiting.add(wake);
        signal.addEventListener('abort', wake, { once: true });
      });
    },
    closed: () => closed,
    close() {
      closed = true;
      wakeAll();
    },
  };
}

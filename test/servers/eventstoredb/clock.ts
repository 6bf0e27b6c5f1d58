/** The time of the test server: that of the machine, or one that moves only when a test says so. */

export interface ServerClock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Runs `work` after `ms`. @returns takes it back */
  after(ms: number, work: () => void): () => void;
}

export const machineClock: ServerClock = {
  now: Date.now,
  after(ms, work) {
    const timer = setTimeout(work, ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/** @returns a clock on which no time passes but by `wait`, however slow the machine is */
export function createSteppedClock(): ServerClock & { wait(ms: number): Promise<void> } {
  let now = Date.now();
  const due = new Set<{ readonly at: number; readonly work: () => void }>();
  return {
    now: () => now,
    after(ms, work) {
      const one = { at: now + ms, work };
      due.add(one);
      return () => void due.delete(one);
    },
    async wait(ms) {
      now += ms;
      for (const one of due) {
        if (one.at > now) continue;
        due.delete(one);
        one.work();
      }
    },
  };
}

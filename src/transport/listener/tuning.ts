/** Numbers of the listener that the contract does not state. Those that it states are in `src/kernel/limits.ts`. */
export const tuning = {
  /** Interval at which the time limits of connections are checked. */
  sweepMs: 200,
} as const;

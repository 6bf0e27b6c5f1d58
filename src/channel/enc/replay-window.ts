/**
 * The counters that a session has seen: a sliding window below the highest one (like RFC 6479). Pure. Implements
 * `docs/data-plane.md#counters-and-replay`.
 */

/**
 * How far below the highest counter a late datagram may be.
 * @internal exported for tests
 */
export const windowCounters = 2048;
/** One word more than the window, so that a word is cleared only once all of it has left the window. */
const words = windowCounters / 32 + 1;

export interface ReplayWindow {
  /** Whether a datagram with this counter is acceptable: not seen before, and not too old. */
  accepts(counter: number): boolean;
  /** Records an accepted counter once its datagram is authentic. @returns whether it is the highest so far */
  note(counter: number): boolean;
}

export function createReplayWindow(): ReplayWindow {
  const seen = new Uint32Array(words);
  let highest = -1;
  const wordOf = (counter: number): number => Math.floor(counter / 32) % words;
  const bitOf = (counter: number): number => (1 << (counter % 32)) >>> 0;

  return {
    accepts(counter) {
      if (counter > highest) return true;
      if (counter <= highest - windowCounters) return false;
      return ((seen[wordOf(counter)] ?? 0) & bitOf(counter)) === 0;
    },
    note(counter) {
      const isNewest = counter > highest;
      if (isNewest) {
        const from = Math.floor(highest / 32);
        const steps = Math.min(words, Math.floor(counter / 32) - from);
        for (let step = 1; step <= steps; step += 1) seen[(from + step) % words] = 0;
        highest = counter;
      }
      seen[wordOf(counter)] = ((seen[wordOf(counter)] ?? 0) | bitOf(counter)) >>> 0;
      return isNewest;
    },
  };
}

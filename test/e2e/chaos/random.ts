/** Random numbers from a seed. They repeat what is sent and broken and when, but not how the machine reacts. */
export interface Random {
  /** 0 (inclusive) to 1. */
  next(): number;
  /** A whole number from 0 to `count` - 1. */
  below(count: number): number;
  between(min: number, max: number): number;
  chance(probability: number): boolean;
  pick<T>(from: readonly T[]): T | undefined;
  /** A separate sequence, so that one user's draws do not change the numbers of another. */
  fork(name: string): Random;
}

export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  // mulberry32
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    next,
    below: (count) => Math.floor(next() * count),
    between: (min, max) => min + next() * (max - min),
    chance: (probability) => next() < probability,
    pick: (from) => from[Math.floor(next() * from.length)],
    fork(name) {
      let hash = seed >>> 0;
      for (const letter of name) hash = (Math.imul(hash, 31) + letter.charCodeAt(0)) >>> 0;
      return createRandom(hash);
    },
  };
}

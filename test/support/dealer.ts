/** Draws the details of a random move; the same seed gives the same details. */
export interface Dealer {
  of<T>(list: readonly T[]): T;
  chance(percent: number): boolean;
  upTo(max: number): number;
}

export function dealer(seed: number): Dealer {
  let state = seed;
  const draw = (): number => {
    // mulberry32
    state = (state + 0x6d2b_79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) >>> 8;
  };
  return {
    of<T>(list: readonly T[]): T {
      return list[draw() % list.length] as T;
    },
    chance: (percent) => draw() % 100 < percent,
    upTo: (max) => draw() % (max + 1),
  };
}

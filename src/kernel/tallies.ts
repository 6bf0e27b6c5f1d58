/**
 * Numbers that grow while the service works: counts and histograms, kept per combination of a few words that the code knows
 * beforehand, never of what a client sends. Cheap enough for every request. How they are shown is in
 * `src/operations/metrics.ts`.
 */

/** One word per label, in the order of the labels. */
export type Words = readonly string[];

export interface Tally {
  /** Adds to the count of these words, one by default. */
  add(words: Words, by?: number): void;
  all(): Iterable<{ readonly words: Words; readonly value: number }>;
}

export interface Distribution {
  /** How many values lie above the bound before and at most at this one, in the order of the bounds; then those above all. */
  readonly counts: readonly number[];
  readonly sum: number;
}

export interface Histogram {
  /** Upper bounds, ascending. */
  readonly bounds: readonly number[];
  observe(words: Words, value: number): void;
  all(): Iterable<{ readonly words: Words; readonly value: Distribution }>;
}

/** A bound in case the words are not as few as their author thought; what comes above it is counted under `other`. */
const combinationsMax = 4_096;

export function createTally(): Tally {
  const table = createTable<{ value: number }>(() => ({ value: 0 }));
  return {
    add(words, by = 1) {
      table.of(words).value += by;
    },
    *all() {
      for (const { words, entry } of table.all()) yield { words, value: entry.value };
    },
  };
}

/** @param bounds upper bounds, ascending, in the unit of the values */
export function createHistogram(bounds: readonly number[]): Histogram {
  const table = createTable(() => ({ counts: Array.from({ length: bounds.length + 1 }, () => 0), sum: 0 }));
  return {
    bounds,
    observe(words, value) {
      const entry = table.of(words);
      let place = 0;
      // A value that is no number counts as above all bounds.
      while (place < bounds.length && !(value <= (bounds[place] ?? 0))) place += 1;
      entry.counts[place] = (entry.counts[place] ?? 0) + 1;
      if (Number.isFinite(value)) entry.sum += value;
    },
    *all() {
      for (const { words, entry } of table.all()) yield { words, value: entry };
    },
  };
}

interface Table<T> {
  of(words: Words): T;
  all(): Iterable<{ readonly words: Words; readonly entry: T }>;
}

function createTable<T>(create: () => T): Table<T> {
  const entries = new Map<string, { readonly words: Words; readonly entry: T }>();
  return {
    of(words) {
      const key = words.length === 1 ? (words[0] ?? '') : words.join('\n');
      const known = entries.get(key);
      if (known !== undefined) return known.entry;
      if (entries.size >= combinationsMax && words.some((word) => word !== 'other')) {
        return this.of(words.map(() => 'other'));
      }
      const added = { words: [...words], entry: create() };
      entries.set(key, added);
      return added.entry;
    },
    all: () => entries.values(),
  };
}

/** Bounds of waits that people and agents notice, in seconds: from a millisecond to half a minute. */
export const secondsBounds: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
];

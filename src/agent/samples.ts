/** The last `capacity` measurements and their percentiles. */
export interface Samples {
  add(value: number): void;
  /** The percentile by nearest rank; 0 without measurements. `share` is 0..1. */
  percentile(share: number): number;
  clear(): void;
}

export function createSamples(capacity: number): Samples {
  let values: number[] = [];
  let next = 0;
  return {
    add(value) {
      values[next] = value;
      next = (next + 1) % capacity;
    },
    percentile(share) {
      if (values.length === 0) return 0;
      const sorted = values.toSorted((a, b) => a - b);
      return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))] ?? 0;
    },
    clear() {
      values = [];
      next = 0;
    },
  };
}

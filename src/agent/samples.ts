/** The last so many measurements and their percentiles: bounded, whatever the traffic. */
export interface Samples {
  add(value: number): void;
  /** Nearest rank; 0 when nothing was measured. `share` is 0..1. */
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

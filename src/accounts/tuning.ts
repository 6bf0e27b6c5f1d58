/** Account limits that the contract does not state. */
export const tuning = {
  /** Last uses of API tokens on their way to the read store. */
  uses: {
    everyMs: 500,
    batchEntries: 500,
    maxEntries: 10_000,
    retry: { firstMs: 500, maxMs: 15_000 },
    closeWithinMs: 1_000,
  },
  /** How often last uses of deleted tokens are removed. */
  removeUsesEveryMs: 3_600_000,
  /** Addresses whose unknown tokens are counted. */
  guessAddresses: 10_000,
} as const;

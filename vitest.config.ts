import { defineConfig } from 'vitest/config';
import { HangReporter } from './test/run/hang.js';
import { LongestFirst } from './test/run/order.js';
import { SkippedReporter } from './test/run/skipped.js';

/** Tests that replace a module, or count something of the whole process. */
const alone = [
  'test/agent-protocol/candidates.test.ts',
  'test/commands/facts.test.ts',
  'test/domain/large-fleets.test.ts',
  'test/kernel/crypto.test.ts',
  'test/log-chain/upcasting.test.ts',
  'test/noise/published-vectors.test.ts',
  'test/start/no-hard-links.test.ts',
  'test/start/uncaught.test.ts',
  'test/storage/eventstoredb/reads.test.ts',
  'test/storage/flushes.test.ts',
  'test/storage/ownership.test.ts',
  'test/storage/slow-flush.test.ts',
];

export default defineConfig({
  test: {
    globalSetup: ['test/run/global-setup.ts'],
    setupFiles: ['test/run/property-seed.ts'],
    reporters: ['default', new SkippedReporter(), new HangReporter()],
    // Tests wait for conditions, each with a bound of its own: a busy machine must not end them first.
    expect: { poll: { timeout: 20_000 } },
    testTimeout: 120_000,
    hookTimeout: 120_000,
    sequence: { sequencer: LongestFirst },
    // Three on two cores, because the longest files mostly wait for the programs that they start.
    maxWorkers: 3,
    projects: [
      { extends: true, test: { name: 'alone', include: alone } },
      // They share processes, because loading the service's modules takes longer than most files.
      { extends: true, test: { name: 'together', include: ['test/**/*.test.ts'], exclude: alone, isolate: false } },
    ],
  },
});

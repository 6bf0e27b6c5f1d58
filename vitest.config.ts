import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/run/global-setup.ts'],
    testTimeout: 30_000,
    hookTimeout: 30_000,
    // Real servers, real sockets and fsync share two cores: more workers only make each other late.
    maxWorkers: 2,
  },
});

/**
 * The tests that mutation testing runs for one folder of `src`. They run in this process: a mistake that the tool
 * switches on does not reach a child process. `scripts/mutation-test.ts` names the folders.
 */
import { env } from 'node:process';
import { defineConfig } from 'vitest/config';

const folders = (env.MUTATION_TESTS ?? '').split(',').filter((folder) => folder !== '');

export default defineConfig({
  test: {
    include: folders.map((folder) => `${folder}/**/*.test.ts`),
    testTimeout: 30_000,
    hookTimeout: 30_000,
    maxWorkers: 1,
  },
});

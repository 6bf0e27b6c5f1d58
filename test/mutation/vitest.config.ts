/**
 * The tests that mutation testing runs for one folder of `src`. They run in this process: a mistake that the tool
 * switches on does not reach a child process. `scripts/mutation-test.ts` names the folders.
 */
import { relative } from 'node:path';
import { env } from 'node:process';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { defineConfig } from 'vitest/config';
import { keptThread } from './kept-thread.js';

const tests = (env.MUTATION_TESTS ?? '').split(',').filter((name) => name !== '');
/** How long a test may wait in vain; for quick tests less saves most of the time of a run. */
const testMs = Number(env.MUTATION_TEST_MS ?? 15_000);
const thread = keptThread(Number(env.MUTATION_RUNS_PER_THREAD ?? 40));

/** The longest that each file has taken so far, in milliseconds. */
const longest = new Map<string, number>();

/** Quick files come first: a run ends with the first test that fails, and a mistake can keep a slow test waiting in vain. */
class QuickFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    for (const { moduleId, project } of files) {
      const name = `${project.name}:${relative(this.ctx.config.root, moduleId)}`;
      const last = this.ctx.cache.getFileTestResults(name)?.duration ?? 0;
      longest.set(moduleId, Math.max(longest.get(moduleId) ?? 0, last));
    }
    return files.toSorted((a, b) => (longest.get(a.moduleId) ?? 0) - (longest.get(b.moduleId) ?? 0));
  }
}

export default defineConfig({
  cacheDir: 'dist/mutation/vite',
  plugins: [
    {
      name: 'kept-thread',
      // Here, because Stryker's own choice of a pool stands above this file.
      configureVitest({ project }) {
        project.config.pool = thread.name;
        project.config.poolRunner = thread;
      },
    },
  ],
  test: {
    include: tests
      .filter((name) => !name.startsWith('!'))
      .map((name) => (name.endsWith('.test.ts') ? name : `${name}/**/*.test.ts`)),
    exclude: tests.filter((name) => name.startsWith('!')).map((name) => name.slice(1)),
    setupFiles: ['test/run/property-seed.ts'],
    testTimeout: testMs,
    hookTimeout: testMs,
    isolate: false,
    maxWorkers: 1,
    sequence: { sequencer: QuickFirst },
  },
});

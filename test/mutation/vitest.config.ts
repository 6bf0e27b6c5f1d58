/**
 * The tests that mutation testing runs for one folder of `src`. They run in this process: a mistake that the tool
 * switches on does not reach a child process. `scripts/mutation-test.ts` names the folders.
 */
import { env } from 'node:process';
import { BaseSequencer } from 'vitest/node';
import type { TestSpecification } from 'vitest/node';
import { defineConfig } from 'vitest/config';
import { keptThread } from './kept-thread.js';

const tests = (env.MUTATION_TESTS ?? '').split(',').filter((name) => name !== '');
const thread = keptThread(Number(env.MUTATION_RUNS_PER_THREAD ?? 40));

/** The file that saw the mistake before comes first, then the quick ones: a run ends with the first test that fails. */
class LikelyFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = (file: TestSpecification): number => {
      const last = this.ctx.cache.getFileTestResults(
        `${file.project.name}:${relativePath(this.ctx.config.root, file)}`,
      );
      return last === undefined ? 0 : last.failed ? -1 : last.duration;
    };
    return files.toSorted((a, b) => rank(a) - rank(b));
  }
}

function relativePath(root: string, file: TestSpecification): string {
  return file.moduleId.startsWith(`${root}/`) ? file.moduleId.slice(root.length + 1) : file.moduleId;
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
    testTimeout: 5_000,
    hookTimeout: 5_000,
    isolate: false,
    maxWorkers: 1,
    sequence: { sequencer: LikelyFirst },
  },
});

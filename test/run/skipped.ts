/** A reporter that names what was skipped, one line each, after everything else. */
import type { Reporter, TestCase, TestModule, TestSuite, Vitest } from 'vitest/node';
import { ferretDbBuilt } from '../servers/ferretdb-process.js';

type Parent = TestModule | TestSuite;

const isSkipped = (test: TestCase): boolean => test.result().state === 'skipped';

/** The outermost suites of which every test was skipped, and other skipped tests. */
function* skippedIn(parent: Parent): Generator<{ readonly name: string; readonly tests: number }> {
  for (const child of parent.children) {
    if (child.type === 'test') {
      if (isSkipped(child)) yield { name: child.fullName, tests: 1 };
      continue;
    }
    const tests = [...child.children.allTests()];
    if (tests.length > 0 && tests.every(isSkipped)) yield { name: child.fullName, tests: tests.length };
    else yield* skippedIn(child);
  }
}

export class SkippedReporter implements Reporter {
  #named = false;

  onInit(vitest: Vitest): void {
    this.#named = vitest.config.testNamePattern !== undefined;
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    // With -t, every other test is skipped.
    if (this.#named) return;
    const lines = modules.flatMap((module) =>
      [...skippedIn(module)].map(
        ({ name, tests }) => `SKIPPED ${module.relativeModuleId}: ${name} (${tests} ${tests === 1 ? 'test' : 'tests'})`,
      ),
    );
    if (lines.length === 0) return;
    if (!ferretDbBuilt()) lines.push('FerretDB is missing: install Go and run `npm run test:servers`');
    process.stdout.write(`\n${lines.join('\n')}\n`);
  }
}

/** Runs once before the tests, and again when watched sources change. */
import type { TestProject } from 'vitest/node';
import { compilePrograms } from './compile.js';

export function setup(project: TestProject): void {
  compilePrograms();
  project.onTestsRerun(async () => compilePrograms());
}

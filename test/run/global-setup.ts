/** Runs once before the tests, and again when watched sources change. */
import type { TestProject } from 'vitest/node';
import { compilePrograms } from './compile.js';

export async function setup(project: TestProject): Promise<void> {
  await compilePrograms();
  project.onTestsRerun(compilePrograms);
}

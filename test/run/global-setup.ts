/** Runs once before the tests, and again when watched sources change. */
import type { TestProject } from 'vitest/node';
import { buildConsole } from '../../scripts/console-build.js';
import { compilePrograms } from './compile.js';

export async function setup(project: TestProject): Promise<void> {
  buildConsole();
  await compilePrograms();
  project.onTestsRerun(compilePrograms);
}

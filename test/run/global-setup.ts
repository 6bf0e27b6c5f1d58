/** Runs once before the tests, and again when watched sources change. */
import type { TestProject } from 'vitest/node';
import { buildCli } from '../../cli/build.js';
import { buildConsole } from '../../scripts/console-build.js';
import { compilePrograms } from './compile.js';

export async function setup(project: TestProject): Promise<void> {
  buildConsole();
  await buildCli();
  await compilePrograms();
  project.onTestsRerun(compilePrograms);
}

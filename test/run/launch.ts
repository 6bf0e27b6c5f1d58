/**
 * Runs a compiled program with the machine code that an earlier process of it has left: compiling its source takes half
 * of the processor time of a start. Without such code, or with code of another Node, it is compiled as usual. For tests
 * only; Node 22 has `module.enableCompileCache`.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { Module, createRequire } from 'node:module';
import { dirname } from 'node:path';
import { constants, Script } from 'node:vm';

/** Set to anything, makes the process leave its machine code when it exits. */
export const recordVariable = 'TEST_RECORD_MACHINE_CODE';

/** @param file a program */
export function machineCodeOf(file: string): string {
  return `${file}.code`;
}

/** @param file of CommonJS in ASCII */
export function launch(file: string): void {
  const code = machineCodeOf(file);
  const record = process.env[recordVariable] !== undefined;
  const script = new Script(Module.wrap(readFileSync(file, 'latin1')), {
    filename: file,
    ...(!record && existsSync(code) ? { cachedData: readFileSync(code) } : {}),
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  });
  const module = { exports: {} };
  type Compiled = (exports: object, require: NodeJS.Require, module: object, file: string, folder: string) => void;
  const run = script.runInThisContext() as Compiled;
  run(module.exports, createRequire(file), module, file, dirname(file));
  if (!record) return;
  process.once('exit', () => {
    // At the exit: functions that were compiled when they were first called are part of it.
    writeFileSync(`${code}.new`, script.createCachedData());
    renameSync(`${code}.new`, code);
  });
}

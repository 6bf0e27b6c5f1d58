/** Runs one command line in this process: commands write to its streams, read its environment, and set its exit code. */
import process from 'node:process';
import { CommanderError } from 'commander';
import { Failure, exitCodes, refused } from './exit.js';
import { sayFailure, tellUntold } from './output.js';
import { createProgram } from './program.js';

/** @param args what was typed after the name of the program @returns the exit code */
export async function run(args: readonly string[]): Promise<number> {
  try {
    await createProgram().parseAsync(args, { from: 'user' });
  } catch (error) {
    process.exitCode = exitCodeOf(error);
    if (tellUntold()) process.exitCode = exitCodes.refused;
  }
  return Number(process.exitCode ?? exitCodes.done);
}

function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.usage;
  const failure = error instanceof Failure ? error : refused(error instanceof Error ? error.message : String(error));
  sayFailure(failure);
  return failure.exitCode;
}

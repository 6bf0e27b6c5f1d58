/**
 * `svcctl`, the command line of the gateway control service: everything that it does goes through the public API. Nothing of the
 * service is imported. Implements `docs/contract/automation.md#the-command-line-svcctl`.
 */
import { argv, stderr, stdout } from 'node:process';
import { CommanderError } from 'commander';
import { Failure, exitCodes } from './exit.js';
import { sayFailure, tellUntold } from './output.js';
import { createProgram } from './program.js';

// A reader that goes away, such as `head`, ends the command and is no failure.
stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (tellUntold()) process.exit(exitCodes.refused);
  if (error.code === 'EPIPE') process.exit(process.exitCode ?? exitCodes.done);
  sayFailure(new Failure(exitCodes.refused, `the output cannot be written: ${error.message}`));
  process.exit(exitCodes.refused);
});
// Nobody is left to tell.
stderr.on('error', () => undefined);

try {
  await createProgram().parseAsync(argv);
} catch (error) {
  process.exitCode = exitCodeOf(error);
  if (tellUntold()) process.exitCode = exitCodes.refused;
}
// What a slow reader has not taken yet would be lost with the process.
await Promise.all([stdout, stderr].map((stream) => new Promise<void>((resolve) => stream.write('', () => resolve()))));
// A stream that is still open, as that of top, does not keep the process.
process.exit(process.exitCode ?? exitCodes.done);

function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.usage;
  const failure =
    error instanceof Failure
      ? error
      : new Failure(exitCodes.refused, error instanceof Error ? error.message : String(error));
  sayFailure(failure);
  return failure.exitCode;
}

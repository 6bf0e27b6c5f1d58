/**
 * `svcctl`, the command line of the gateway control service: it uses only the public API, and imports
 * nothing of the service. Implements `docs/contract/automation.md#the-command-line-svcctl`.
 */
import { argv, stderr, stdout } from 'node:process';
import { CommanderError } from 'commander';
import { Failure, exitCodes } from './exit.js';
import { sayFailure, tellUntold } from './output.js';
import { createProgram } from './program.js';

// A reader that closes early, such as `head`, ends the command without a failure.
stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (tellUntold()) process.exit(exitCodes.refused);
  if (error.code === 'EPIPE') process.exit(process.exitCode ?? exitCodes.done);
  sayFailure(new Failure(exitCodes.refused, `the output cannot be written: ${error.message}`));
  process.exit(exitCodes.refused);
});
// No reader is left.
stderr.on('error', () => undefined);

try {
  await createProgram().parseAsync(argv);
} catch (error) {
  process.exitCode = exitCodeOf(error);
  if (tellUntold()) process.exitCode = exitCodes.refused;
}
// Lets a slow reader take the rest before the process ends.
await Promise.all([stdout, stderr].map((stream) => new Promise<void>((resolve) => stream.write('', () => resolve()))));
// An open stream, such as that of top, must not keep the process alive.
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

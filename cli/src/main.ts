/**
 * `svcctl`, the command line of the gateway control service: it uses only the public API, and imports
 * nothing of the service. Implements `docs/contract/automation.md#the-command-line-svcctl`.
 */
import process, { argv, stderr, stdout } from 'node:process';
import { Failure, exitCodes, refused } from './exit.js';
import { endUnread, sayFailure, tellUntold } from './output.js';
import { run } from './run.js';

// A reader that closes early, such as `head`, ends the command, without a failure if all is done.
stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (tellUntold()) process.exit(exitCodes.refused);
  if (error.code === 'EPIPE') endUnread();
  sayFailure(refused(`the output cannot be written: ${error.message}`));
  process.exit(exitCodes.refused);
});
// No reader is left.
stderr.on('error', () => undefined);
// A request whose connection is closed before it is sent never settles, and nothing else keeps the process alive.
process.once('beforeExit', () => {
  sayFailure(new Failure(exitCodes.unreachable, 'the service closed the connection, and did not answer'));
  process.exit(tellUntold() ? exitCodes.refused : exitCodes.unreachable);
});

const code = await run(argv.slice(2));
// Lets a slow reader take the rest before the process ends.
await Promise.all([stdout, stderr].map((stream) => new Promise<void>((resolve) => stream.write('', () => resolve()))));
// An open stream, such as that of top, must not keep the process alive.
process.exit(code);

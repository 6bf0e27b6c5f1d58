/** `gateway-agent` and `npm run agent`: what the arguments ask for. `command-line.ts` has the exit codes. */
import { errorText, unreachable } from '../kernel/errors.js';
import { joinByHand, replacePsk } from './by-hand.js';
import { readCommandLine, type Command } from './command-line.js';
import { AgentConfigError, type Environment } from './config.js';
import { exitCodes } from './exit-codes.js';
import { run } from './run.js';
import { StateError } from './state-directory.js';

async function execute(command: Command, environment: Environment): Promise<number> {
  switch (command.kind) {
    case 'print':
      process.stdout.write(command.text);
      return exitCodes.done;
    case 'wrong':
      process.stderr.write(`gateway-agent: ${command.message}\ngateway-agent --help shows how it is used\n`);
      return exitCodes.wrongUse;
    case 'run':
      return run(environment);
    case 'join':
      return joinByHand(command, environment);
    case 'identity':
      return replacePsk(command, environment);
    default:
      return unreachable(command);
  }
}

async function main(args: readonly string[]): Promise<number> {
  const environment = { ...process.env };
  // Secrets must not stay in the environment, where a core dump or a child process would show them.
  for (const name of ['SVC_CONTROL_PSK', 'SVC_JOIN_TOKEN']) delete process.env[name];
  try {
    return await execute(readCommandLine(args), environment);
  } catch (error) {
    const isOfState = error instanceof StateError;
    if (!isOfState && !(error instanceof AgentConfigError)) throw error;
    process.stderr.write(`${error.message}\n`);
    return isOfState ? exitCodes.stateUnusable : exitCodes.wrongUse;
  }
}

main(process.argv.slice(2)).then(
  // At once: parts that did not close in time must not keep the process alive.
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`${errorText(error)}\n`);
    process.exit(exitCodes.failed);
  },
);

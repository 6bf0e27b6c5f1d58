/** `gateway-control maintenance …`: the commands, each with what it does and its module, and which of them is meant. */
import { editDistance } from '../../src/app/config/names.js';
import { runCommand, say, UsageError, type ExitCode } from './command-line.js';

/** A module of `commands/`. */
interface Command {
  readonly usage: string;
  run(argv: readonly string[], signal: AbortSignal): Promise<ExitCode>;
}

interface Entry {
  readonly name: string;
  readonly does: string;
  load(): Promise<Command>;
}

export const maintenanceCommands: readonly Entry[] = [
  {
    name: 'log:export',
    does: 'exports the installation as one checksummed file',
    load: () => import('./commands/log-export.js'),
  },
  {
    name: 'log:import',
    does: 'imports such a file into an empty installation',
    load: () => import('./commands/log-import.js'),
  },
  {
    name: 'log:verify',
    does: 'verifies such a file, or the log of the installation',
    load: () => import('./commands/log-verify.js'),
  },
  {
    name: 'restore',
    does: 'imports a backup into an empty installation, and proves what was imported',
    load: () => import('./commands/restore.js'),
  },
  {
    name: 'projections:rebuild',
    does: 'rebuilds read models from the log, or compares them with it',
    load: () => import('./commands/projections-rebuild.js'),
  },
  {
    name: 'keys:rotate-master',
    does: 'wraps the keyring with a new master key',
    load: () => import('./commands/keys-rotate-master.js'),
  },
  {
    name: 'keys:rotate-sealing',
    does: 'adds the key that seals secrets from now on',
    load: () => import('./commands/keys-rotate-sealing.js'),
  },
  {
    name: 'keys:rotate-signing',
    does: 'replaces the key that signs access tokens, which ends all tokens',
    load: () => import('./commands/keys-rotate-signing.js'),
  },
  {
    name: 'reality:keygen',
    does: 'generates the keys of REALITY on the agent listener',
    load: () => import('./commands/reality-keygen.js'),
  },
  {
    name: 'admin:reset-password',
    does: 'sets a new password for an account',
    load: () => import('./commands/admin-reset-password.js'),
  },
  {
    name: 'compiler:lower',
    does: 'goes back to an older version of the compiler',
    load: () => import('./commands/compiler-lower.js'),
  },
];

const nameWidth = Math.max(...maintenanceCommands.map(({ name }) => name.length));

const usage = [
  'Usage: gateway-control maintenance COMMAND [arguments]',
  '',
  'Commands, each of which explains itself with --help:',
  ...maintenanceCommands.map(({ name, does }) => `  ${name.padEnd(nameWidth)}  ${does}`),
].join('\n');

/** Runs the command that the first argument names, and sets the exit code. */
export async function runMaintenance([name, ...argv]: readonly string[]): Promise<void> {
  const entry = maintenanceCommands.find((one) => one.name === name);
  if (entry !== undefined) {
    const command = await entry.load();
    return runCommand(command.usage, command.run, argv);
  }
  if (name === '--help') return say(usage);
  return runCommand(usage, () => Promise.reject(new UsageError(refusalOf(name))), []);
}

function refusalOf(name: string | undefined): string {
  if (name === undefined || name === '') return 'The command is missing';
  const [closest] = maintenanceCommands.toSorted((a, b) => editDistance(a.name, name) - editDistance(b.name, name));
  return `"${name}" is not a maintenance command; the closest is ${closest?.name}`;
}

/** All commands of `svcctl`, as one value. */
import { resolve } from 'node:path';
import { Command } from 'commander';
import { bulkCommands } from './commands/bulk.js';
import { completionCommands } from './commands/completion.js';
import { diagnoseCommand } from './commands/diagnose.js';
import { eventCommands } from './commands/events.js';
import { fleetCommands } from './commands/fleet.js';
import { keyCommands } from './commands/keys.js';
import { operateCommands } from './commands/operate.js';
import { referenceCommand } from './commands/reference.js';
import { resourceCommands } from './commands/resources.js';
import { rolloutCommands } from './commands/rollouts.js';
import { signInCommands } from './commands/sign-in.js';
import { statusCommand } from './commands/status.js';
import { topCommand } from './commands/top.js';
import { ownVersion, versionCommand } from './commands/version.js';
import { everyCommand } from './program-tree.js';

export function createProgram(): Command {
  const program = new Command('svcctl')
    .description('The command line of the gateway control service.')
    .version(ownVersion, '-V, --version', 'show what this program is')
    .option('--context <name>', 'use this context instead of the current one')
    .option('--ca-file <file>', 'trust the certificates of this file too', (file) => resolve(file))
    .option('--insecure', 'let the token go over plain http')
    .exitOverride()
    .showHelpAfterError(false)
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error:/, 'svcctl:')) });
  signInCommands(program);
  resourceCommands(program);
  fleetCommands(program);
  operateCommands(program);
  keyCommands(program);
  bulkCommands(program);
  diagnoseCommand(program);
  eventCommands(program);
  rolloutCommands(program);
  statusCommand(program);
  topCommand(program);
  versionCommand(program);
  completionCommands(program);
  referenceCommand(program);
  for (const command of everyCommand(program)) command.exitOverride().copyInheritedSettings(program);
  return program;
}

/** Prints the reference page of all commands, for `npm run generate`; hidden. */
import type { Command } from 'commander';
import { everyCommand } from '../program-tree.js';
import { write } from '../output.js';

/** Commands that only programs call. */
const hidden = ['svcctl reference', 'svcctl complete'];

export function referenceCommand(program: Command): void {
  program.command('reference', { hidden: true }).action(async () => write([...sectionsOf(program)].join('\n')));
}

function* sectionsOf(program: Command): Generator<string> {
  yield 'Options of every command:\n';
  yield optionsOf(program);
  for (const command of everyCommand(program)) {
    const path = pathOf(command);
    if (hidden.includes(path)) continue;
    const summary = command.summary();
    yield `## ${path}\n`;
    if (summary !== '') yield `${summary[0]?.toUpperCase()}${summary.slice(1)}. ${command.description()}`.trim() + '\n';
    yield `\`\`\`\n${path} ${command.usage()}\n\`\`\`\n`;
    if (command.options.length > 0) yield optionsOf(command);
    const example = exampleOf(command);
    if (example !== undefined) yield `Example: \`${example}\`\n`;
  }
}

/** The example at the end of a command's help. */
function exampleOf(command: Command): string | undefined {
  let help = '';
  command.configureOutput({ writeOut: (text) => (help += text) }).outputHelp();
  return /\nExample:\n {2}(.+)\n/.exec(help)?.[1];
}

const pathOf = (command: Command): string =>
  command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;

function optionsOf(command: Command): string {
  const rows = command.options.map((option) => {
    const choices = option.argChoices === undefined ? '' : ` (${option.argChoices.join(', ')})`;
    return `| \`${option.flags}\` | ${option.description}${choices} |`;
  });
  return `| option | |\n|---|---|\n${rows.join('\n')}\n`.replaceAll(/(?<=`[^`|]*)\|(?=[^`|]*`)/g, '\\|');
}

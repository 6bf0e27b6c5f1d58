/** Completion: a script for each shell, which asks the program itself what may follow the words so far. */
import process from 'node:process';
import { Argument, type Command, type Option } from 'commander';
import { readContexts } from '../contexts.js';
import { write } from '../output.js';
import { firstPageOf, typeNames, typeOf } from '../resources.js';
import { dataOf, type Api } from '../service.js';
import { openSession, type GlobalOptions } from '../session.js';
import { agentCommands } from './bulk.js';

const shells = ['bash', 'zsh', 'fish'] as const;
/** A shell must not wait for the service. */
const answerWithinMs = 2_000;
/** Printed in place of candidates, so that the shell offers files. */
const files = ':files';

export function completionCommands(program: Command): void {
  program
    .command('completion')
    .summary('print the completion script of a shell')
    .addArgument(new Argument('<shell>', 'the shell').choices([...shells]))
    .addHelpText('after', '\nExample:\n  source <(svcctl completion bash)')
    .action(async (shell: (typeof shells)[number]) => write(scripts[shell]));

  program
    .command('complete', { hidden: true })
    .argument('[words...]', 'the words so far, with the one that is typed last')
    .allowUnknownOption()
    .action(async (words: readonly string[]) => {
      setTimeout(() => process.exit(0), answerWithinMs).unref();
      // Errors would garble the prompt.
      const found = await candidates(program, words).catch(() => []);
      await write(found.map((one) => `${one}\n`).join(''));
    });
}

async function candidates(program: Command, words: readonly string[]): Promise<readonly string[]> {
  const typed = words.at(-1) ?? '';
  let command = program;
  let option: Option | undefined;
  const given: string[] = [];
  const globals = new Map<string, string>();
  for (const word of words.slice(0, -1).map(unquoted)) {
    if (option !== undefined) {
      globals.set(option.attributeName(), word);
      option = undefined;
      continue;
    }
    if (word.startsWith('-')) {
      const found = optionsOf(command).find(({ short, long }) => word === short || word === long);
      if (found?.required === true) option = found;
      continue;
    }
    const below = command.commands.find((one) => one.name() === word);
    if (below === undefined) given.push(word);
    else command = below;
  }
  if (option === undefined && typed.startsWith('-')) {
    return starting(
      typed,
      optionsOf(command).flatMap(({ long }) => long ?? []),
    );
  }
  const argument =
    command.registeredArguments[given.length] ?? command.registeredArguments.find(({ variadic }) => variadic);
  const kind = option === undefined ? argument?.name() : placeholderOf(option);
  const choices = option?.argChoices ?? (option === undefined ? argument?.argChoices : undefined);
  if (choices !== undefined) return starting(typed, choices);
  if (kind === 'file' || kind === 'folder') return [files];
  const below = option === undefined && given.length === 0 ? visibleCommands(command) : [];
  const session = async (): Promise<Api> => (await openSession(Object.fromEntries(globals) as GlobalOptions)).api;
  return starting(typed, [...below, ...(await namesOf(kind, { command, given, typed: unquoted(typed), session }))]);
}

interface Place {
  readonly command: Command;
  /** The arguments before it. */
  readonly given: readonly string[];
  readonly typed: string;
  session(): Promise<Api>;
}

/** Candidates for an argument or option of this name. @throws Failure */
async function namesOf(kind: string | undefined, place: Place): Promise<readonly string[]> {
  const { command, given, typed, session } = place;
  switch (kind) {
    case 'type':
      return typeNames;
    case 'context':
      return Object.keys(readContexts().contexts);
    case 'name':
      if (command.name() === 'use') return Object.keys(readContexts().contexts);
      return given[0] === undefined || command.name() === 'create' ? [] : namesIn(await session(), given[0], typed);
    case 'node-or-command':
      return [...agentCommands, ...(await namesIn(await session(), 'node', typed))];
    case 'node-or-label':
      return namesIn(await session(), 'node', typed);
    case 'node':
    case 'chain':
      return namesIn(await session(), kind, typed);
    case 'set':
      return (await dataOf((await session()).GET('/api/fleet/sets'))).items.map(({ set }) => set);
    default:
      return [];
  }
}

async function namesIn(api: Api, word: string, typed: string): Promise<readonly string[]> {
  const type = typeOf(word);
  const rows = await firstPageOf(api, type, typed === '' || type.ofListener === true ? {} : { q: typed });
  return rows.map((row) => String(row[type.nameField]));
}

const visibleCommands = (command: Command): readonly string[] =>
  command
    .createHelp()
    .visibleCommands(command)
    .map((one) => one.name())
    .filter((name) => name !== 'help');

/** Includes the global options, except for the version. */
const optionsOf = (command: Command): readonly Option[] =>
  command.parent === null
    ? command.options.filter(({ long }) => long !== '--version')
    : [...command.options, ...optionsOf(command.parent)];

/** `file` of `--file <file>` and `--ca-file <file>`. A context is called by its name alone. */
const placeholderOf = ({ flags, long }: Option): string | undefined =>
  long === '--context' ? 'context' : /<(.+)>/.exec(flags)?.[1];

// oxlint-disable-next-line no-control-regex -- a candidate must not move the cursor
const unfit = /[\u0000-\u001f\u007f-\u009f]/;

const starting = (typed: string, all: readonly string[]): readonly string[] =>
  all.filter((one) => one.startsWith(unquoted(typed)) && !unfit.test(one));

/** Escapes a word for the shell. */
const unquoted = (word: string): string => word.replaceAll(/\\(.)|["']/g, '$1');

const bash = `_svcctl() {
  local word quoted
  COMPREPLY=()
  while IFS= read -r word; do
    if [ "$word" = '${files}' ]; then
      compopt -o filenames 2>/dev/null
      while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "\${COMP_WORDS[COMP_CWORD]}")
    else
      printf -v quoted %q "$word"
      COMPREPLY+=("$quoted")
    fi
  done < <("\${COMP_WORDS[0]}" complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _svcctl svcctl
`;

const fish = `function _svcctl
  set -l current (commandline -ct)
  set -l found (command svcctl complete -- (commandline -opc)[2..-1] "$current" 2>/dev/null)
  if test "$found" = '${files}'
    __fish_complete_path "$current"
  else
    printf '%s\\n' $found
  end
end
complete -c svcctl -f -a '(_svcctl)'
`;

const scripts: Readonly<Record<(typeof shells)[number], string>> = {
  bash,
  zsh: `#compdef svcctl\nautoload -U +X bashcompinit && bashcompinit\n${bash}`,
  fish,
};

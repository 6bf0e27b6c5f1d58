/** Completion scripts of shells, made from the commands themselves. */
import type { Command } from 'commander';
import { Argument } from 'commander';
import { write } from '../output.js';
import { typeNames } from '../resources.js';

const shells = ['bash', 'zsh', 'fish'] as const;

export function completionCommand(program: Command): void {
  program
    .command('completion')
    .summary('print the completion script of a shell')
    .addArgument(new Argument('<shell>', 'the shell').choices([...shells]))
    .addHelpText('after', '\nExample:\n  source <(svcctl completion bash)')
    .action(async (shell: (typeof shells)[number]) => write(scripts[shell](program)));
}

/** Commands by the words that lead to them, with what may follow each. */
function wordsOf(program: Command): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, readonly string[]>();
  const visit = (command: Command, path: readonly string[]): void => {
    const below = command.commands.map((one) => one.name());
    const options = command.options.flatMap(({ long }) => long ?? []);
    const takesType = command.registeredArguments[0]?.name() === 'type';
    found.set(path.join(' '), [...below, ...(takesType ? typeNames : []), ...options]);
    for (const one of command.commands) visit(one, [...path, one.name()]);
  };
  visit(program, []);
  return found;
}

const bash = (program: Command): string => {
  const cases = [...wordsOf(program)].map(([path, words]) => `    '${path}') words='${words.join(' ')}' ;;`);
  return `_svcctl() {
  local path='' word words=''
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in -*) ;; *) [[ "$(_svcctl_words "\${path:+$path }$word")" ]] && path="\${path:+$path }$word" ;; esac
  done
  COMPREPLY=($(compgen -W "$(_svcctl_words "$path")" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
_svcctl_words() {
  local words=''
  case "$1" in
${cases.join('\n')}
  esac
  echo "$words"
}
complete -F _svcctl svcctl
`;
};

const scripts: Readonly<Record<(typeof shells)[number], (program: Command) => string>> = {
  bash,
  zsh: (program) => `#compdef svcctl\nautoload -U +X bashcompinit && bashcompinit\n${bash(program)}`,
  fish: (program) =>
    [...wordsOf(program)]
      .map(([path, words]) => {
        const first = path.split(' ')[0] ?? '';
        const when = path === '' ? '__fish_use_subcommand' : `__fish_seen_subcommand_from ${first}`;
        return `complete -c svcctl -f -n '${when}' -a '${words.filter((word) => !word.startsWith('-')).join(' ')}'`;
      })
      .join('\n') + '\n',
};

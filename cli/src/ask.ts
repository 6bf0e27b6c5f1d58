/** Questions to a person. Without a terminal there are none: the option that answers is named instead. */
import { stdin, stdout, stderr } from 'node:process';
import { read } from 'read';
import { declined, usage } from './exit.js';

const hasTerminal = (): boolean => stdin.isTTY && stdout.isTTY;

/** @param instead the option that answers without a terminal @throws Failure usage */
export async function ask(question: string, instead: string, preset?: string): Promise<string> {
  if (!hasTerminal()) throw usage(`no terminal to ask for ${question.toLowerCase()}; expected ${instead}`);
  const answer = await read({
    prompt: `${question}: `,
    output: stderr,
    ...(preset === undefined ? {} : { default: preset }),
  });
  if (answer === '') throw usage(`${question}: expected an answer`);
  return answer;
}

/** A password, without echo. It never comes from the arguments, which others on the machine can read. @throws Failure usage */
export async function askPassword(question: string): Promise<string> {
  if (!hasTerminal()) throw usage('a password is asked for on a terminal alone; expected --token-stdin for scripts');
  return read({ prompt: `${question}: `, silent: true, output: stderr });
}

/** @throws Failure declined; usage without a terminal and without `--yes` */
export async function confirm(question: string, yes: boolean | undefined): Promise<void> {
  if (yes === true) return;
  if (!hasTerminal()) throw usage('expected --yes, because there is no terminal to ask');
  const answer = await read({ prompt: `${question} [y/N] `, output: stderr });
  if (!/^y(es)?$/i.test(answer.trim())) throw declined();
}

/** All of stdin. */
export async function readStdin(): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stdin) chunks.push(Buffer.from(chunk as Uint8Array));
  return Buffer.concat(chunks).toString('utf8');
}

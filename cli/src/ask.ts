/** Asks a person on a terminal. Without a terminal, the failure names the option that answers instead. */
import { stdin, stdout, stderr } from 'node:process';
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { declined, usage } from './exit.js';

export const hasTerminal = (): boolean => stdin.isTTY && stdout.isTTY;

/** A line that a person types. @throws Failure declined, for Ctrl-C and Ctrl-D */
function answerTo(question: string, { echo }: { readonly echo: boolean }): Promise<string> {
  return new Promise((resolve, reject) => {
    const output = new Writable({
      write(chunk: Buffer, _encoding, written) {
        if (echo) stderr.write(chunk);
        written();
      },
    });
    const lines = createInterface({ input: stdin, output, terminal: true, historySize: 0 });
    // The interface must exist first: from then on, keys are read one by one.
    stderr.write(question);
    lines.setPrompt(question);
    let answer: string | undefined;
    lines.on('SIGINT', () => lines.close());
    lines.on('line', (text) => {
      answer = text;
      lines.close();
    });
    lines.on('close', () => {
      if (answer === undefined || !echo) stderr.write('\n');
      if (answer === undefined) reject(declined());
      else resolve(answer);
    });
  });
}

/** @param instead the option that answers without a terminal @throws Failure usage */
export async function ask(question: string, instead: string, preset?: string): Promise<string> {
  if (!hasTerminal()) throw usage(`no terminal to ask for ${question.toLowerCase()}; expected ${instead}`);
  const shown = preset === undefined ? '' : ` (${preset})`;
  const answer = (await answerTo(`${question}${shown}: `, { echo: true })) || (preset ?? '');
  if (answer === '') throw usage(`${question}: expected an answer`);
  return answer;
}

/** A password, without echo. It never comes from the arguments, which others on the machine can read. @throws Failure usage */
export async function askPassword(question: string): Promise<string> {
  if (!hasTerminal()) throw usage('a password is asked for on a terminal alone; expected --token-stdin for scripts');
  return answerTo(`${question}: `, { echo: false });
}

/** @throws Failure declined; usage without a terminal and without `--yes` */
export async function confirm(question: string, yes: boolean | undefined): Promise<void> {
  if (yes === true) return;
  if (!hasTerminal()) throw usage('expected --yes, because there is no terminal to ask');
  const answer = await answerTo(`${question} [y/N] `, { echo: true });
  if (!/^y(es)?$/i.test(answer.trim())) throw declined();
}

/** All of stdin. */
export async function readStdin(): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stdin) chunks.push(Buffer.from(chunk as Uint8Array));
  return utf8(Buffer.concat(chunks), 'stdin');
}

/** A text as it was written: replaced letters would make other names of it. @throws Failure usage */
export function utf8(bytes: Uint8Array, file: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw usage(`${file}: expected UTF-8`);
  }
}

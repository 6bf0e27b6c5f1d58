/** Asks for a secret on the terminal. */
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';

/** What a person types, without echo; undefined without a terminal, or for Ctrl-C and Ctrl-D. */
export async function askSecret(question: string): Promise<string | undefined> {
  const { stdin, stderr } = process;
  if (!stdin.isTTY) return undefined;
  const output = new Writable({ write: (_chunk, _encoding, written) => written() });
  const lines = createInterface({ input: stdin, output, terminal: true, historySize: 0 });
  stderr.write(question);
  return new Promise((resolve) => {
    lines.on('SIGINT', () => lines.close());
    lines.on('line', (text) => {
      resolve(text.trim());
      lines.close();
    });
    lines.on('close', () => {
      stderr.write('\n');
      resolve(undefined);
    });
  });
}

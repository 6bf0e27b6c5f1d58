/**
 * Runs a script of this project, or of a copy of it, (`scripts/<name>`) to its end, with only the given SVC_* variables.
 * `before` precedes the command line.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { compiledRoot } from '../../scripts/stack/process.js';

export interface ScriptOutcome {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

export async function runScript(
  name: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  input = '',
  root = compiledRoot,
  before: readonly string[] = [],
): Promise<ScriptOutcome> {
  const path = join(root, 'scripts', `${name}.js`);
  const inherited = Object.fromEntries(Object.entries(process.env).filter(([key]) => !key.startsWith('SVC_')));
  const [command = '', ...rest] = [...before, process.execPath, '--enable-source-maps', path, ...args];
  const child = spawn(command, rest, { env: { ...inherited, ...env } });
  let [out, err] = ['', ''];
  child.stdout.on('data', (data: Buffer) => (out += data.toString()));
  child.stderr.on('data', (data: Buffer) => (err += data.toString()));
  child.stdin.end(input);
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, out, err };
}

/** Runs programs of `scripts/` to their end, with only the given SVC_* variables. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { compiledRoot } from '../../scripts/stack/process.js';

export interface ScriptOutcome {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

export interface MaintenanceRun {
  /** As `gateway-control maintenance` names it. */
  readonly name: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

type Env = Readonly<Record<string, string>>;

export function runScript(name: string, args: readonly string[], env: Env): Promise<ScriptOutcome> {
  return runToEnd([process.execPath, join(compiledRoot, 'scripts', `${name}.js`), ...args], env, '');
}

/** @param root of the compiled programs of another release @param before precedes the command line */
export function runMaintenance(
  name: string,
  args: readonly string[],
  env: Env,
  input = '',
  root = compiledRoot,
  before: readonly string[] = [],
): Promise<ScriptOutcome> {
  const program = join(root, 'scripts', 'gateway-control.js');
  return runToEnd([...before, process.execPath, program, 'maintenance', name, ...args], env, input);
}

/** Runs maintenance commands one after the other in one process, which loads their modules once. */
export async function runMaintenanceSeries(
  runs: readonly MaintenanceRun[],
  before: readonly string[] = [],
): Promise<readonly ScriptOutcome[]> {
  const path = join(compiledRoot, 'test', 'maintenance', 'children', 'series.js');
  const { code, out, err } = await runToEnd([...before, process.execPath, path, JSON.stringify(runs)], {}, '');
  if (code !== 0) throw new Error(`the commands ended with ${code}: ${err}`);
  return JSON.parse(out) as readonly ScriptOutcome[];
}

async function runToEnd(commandLine: readonly string[], env: Env, input: string): Promise<ScriptOutcome> {
  const inherited = Object.fromEntries(Object.entries(process.env).filter(([key]) => !key.startsWith('SVC_')));
  const [command = '', ...args] = commandLine;
  const child = spawn(command, args, { env: { ...inherited, ...env } });
  let [out, err] = ['', ''];
  child.stdout.on('data', (data: Buffer) => (out += data.toString()));
  child.stderr.on('data', (data: Buffer) => (err += data.toString()));
  child.stdin.end(input);
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, out, err };
}

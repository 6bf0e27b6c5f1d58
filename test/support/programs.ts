/** Runs programs of `scripts/` to their end, with only the given SVC_* variables. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
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

/**
 * A maintenance command as a program of its own.
 * @param root of the compiled programs of another release
 */
export function runMaintenanceProgram(
  name: string,
  args: readonly string[],
  env: Env,
  input = '',
  root = compiledRoot,
): Promise<ScriptOutcome> {
  const program = join(root, 'scripts', 'gateway-control.js');
  return runToEnd([process.execPath, program, 'maintenance', name, ...args], env, input);
}

let kept: Series | undefined;

/** The same in one process for all tests of a worker, after what it was asked before. */
export function runMaintenance(name: string, args: readonly string[], env: Env): Promise<ScriptOutcome> {
  kept ??= startSeries([]);
  return kept.run({ name, args, env });
}

/** Several maintenance commands, one after the other in one process. @param before precedes the command line */
export async function runMaintenanceSeries(
  runs: readonly MaintenanceRun[],
  before: readonly string[] = [],
): Promise<readonly ScriptOutcome[]> {
  const series = startSeries(before);
  const outcomes = await Promise.all(runs.map(series.run));
  series.end();
  return outcomes;
}

interface Series {
  run(this: void, run: MaintenanceRun): Promise<ScriptOutcome>;
  end(): void;
}

function startSeries(before: readonly string[]): Series {
  const path = join(compiledRoot, 'test', 'maintenance', 'children', 'series.js');
  const [command = '', ...args] = [...before, process.execPath, path];
  const child = spawn(command, args, { env: withoutSettings(), stdio: ['pipe', 'pipe', 'inherit'] });
  // It ends with its standard input, at the latest when this process ends.
  child.unref();
  for (const stream of [child.stdin, child.stdout] as Partial<Socket>[]) stream.unref?.();
  const waiting: { resolve(outcome: ScriptOutcome): void; reject(error: Error): void }[] = [];
  createInterface({ input: child.stdout }).on('line', (line) =>
    waiting.shift()?.resolve(JSON.parse(line) as ScriptOutcome),
  );
  child.on('close', (code) => {
    for (const { reject } of waiting.splice(0)) reject(new Error(`the maintenance commands ended with ${code}`));
  });
  return {
    run: (run) =>
      new Promise((resolve, reject) => {
        waiting.push({ resolve, reject });
        child.stdin.write(`${JSON.stringify(run)}\n`);
      }),
    end: () => void child.stdin.end(),
  };
}

const withoutSettings = (): Env =>
  Object.fromEntries(
    Object.entries(process.env).flatMap(([key, value = '']) => (key.startsWith('SVC_') ? [] : [[key, value]])),
  );

async function runToEnd(commandLine: readonly string[], env: Env, input: string): Promise<ScriptOutcome> {
  const [command = '', ...args] = commandLine;
  const child = spawn(command, args, { env: { ...withoutSettings(), ...env } });
  let [out, err] = ['', ''];
  child.stdout.on('data', (data: Buffer) => (out += data.toString()));
  child.stderr.on('data', (data: Buffer) => (err += data.toString()));
  child.stdin.end(input);
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, out, err };
}

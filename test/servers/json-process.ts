/** Test programs that print JSON, one line for each thing, and end with their standard input. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

const answersWithinMs = 60_000;

/** An option without a name for a flag is left to the program. */
export type Flags = Readonly<Record<string, string | number | boolean>>;

export interface RunningServer {
  readonly port: number;
  /** Writes a line to its standard input. @returns what it says to that */
  ask(line: string): Promise<unknown>;
  close(): Promise<void>;
}

interface Started {
  readonly child: ChildProcess;
  /** The next line, as JSON; undefined after the last. */
  next(): Promise<unknown>;
}

function start(binary: string, mode: string, options: Flags): Started {
  const flags = Object.entries(options).map(([name, value]) => `-${name}=${value}`);
  const child = spawn(binary, [mode, ...flags], { stdio: ['pipe', 'pipe', 'ignore'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    child,
    async next() {
      const timer = setTimeout(() => child.kill('SIGKILL'), answersWithinMs);
      const line = await lines.next().finally(() => clearTimeout(timer));
      return line.done === true ? undefined : JSON.parse(line.value);
    },
  };
}

/** Starts a program that says its port first. */
export async function startServer(binary: string, mode: string, options: Flags): Promise<RunningServer> {
  const { child, next } = start(binary, mode, options);
  const exited = once(child, 'exit');
  const first = (await next()) as { readonly port?: number; readonly error?: string } | undefined;
  if (first?.port === undefined) throw new Error(`${mode} did not start: ${first?.error ?? 'it said nothing'}`);
  return {
    port: first.port,
    ask(line) {
      child.stdin?.write(`${line}\n`);
      return next();
    },
    async close() {
      child.stdin?.end();
      await exited;
    },
  };
}

/** Runs a program once. @returns what it says first */
export async function runOnce(binary: string, mode: string, options: Flags): Promise<unknown> {
  const { child, next } = start(binary, mode, options);
  const exited = once(child, 'exit');
  const result = await next();
  child.stdin?.end();
  await exited;
  return result;
}

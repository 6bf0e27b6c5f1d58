/**
 * Programs of this project as child processes, always compiled: from the build that this file belongs to, or, in tests,
 * from what `test/run/compile.ts` has compiled. For the demo, the end-to-end tests and the benchmarks; not part of the
 * service.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

export interface RunningProgram {
  readonly child: ChildProcess;
  readonly pid: number;
  /** The last 4 MiB that it printed. */
  output(): string;
  exited(): boolean;
  /** Sends the signal and waits for the exit; SIGKILL after `timeoutMs`. @returns the exit code, null after a signal */
  stop(signal?: NodeJS.Signals, timeoutMs?: number): Promise<number | null>;
}

/** Root of the compiled programs. @internal exported for tests */
export const compiledRoot = fileURLToPath(
  new URL(import.meta.url.endsWith('.ts') ? '../../dist/test-programs' : '../..', import.meta.url),
);

const maxOutput = 4 * 1024 * 1024;

export interface ProgramOptions {
  /** Root of another release's compiled programs; this release if absent. */
  readonly root?: string;
  /** The command that starts the program, instead of Node with the file of a build. */
  readonly command?: readonly string[];
}

/** Starts `src/<name>`, such as `main` or `agent/main`, with `env` and this process's variables except `SVC_` ones. */
export function startProgram(
  name: string,
  env: { readonly [name: string]: string },
  args: readonly string[] = [],
  options: ProgramOptions = {},
): RunningProgram {
  const entry = join(options.root ?? compiledRoot, 'src', `${name}.js`);
  const inherited = Object.fromEntries(Object.entries(process.env).filter(([key]) => !key.startsWith('SVC_')));
  const [command = '', ...more] = options.command ?? [process.execPath, entry];
  const child = spawn(command, [...more, ...args], {
    env: { ...inherited, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  const keep = (chunk: Buffer): void => {
    output = (output + chunk.toString('utf8')).slice(-maxOutput);
  };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  const ended = once(child, 'exit');
  const exited = (): boolean => child.exitCode !== null || child.signalCode !== null;
  return {
    child,
    pid: child.pid ?? -1,
    output: () => output,
    exited,
    async stop(signal = 'SIGTERM', timeoutMs = 15_000) {
      if (!exited()) {
        child.kill(signal);
        const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs);
        await ended;
        clearTimeout(timer);
      }
      return child.exitCode;
    },
  };
}

/**
 * Below the range that operating systems use for outgoing connections, which could otherwise take a free port. Each
 * test worker has its own part and walks through it, so that a port remains its program's across a restart.
 */
const ports = { from: 12_000, parts: 12, ofPart: 1_500 };
const part = Number(process.env['VITEST_POOL_ID'] ?? 0) % ports.parts;
let walked = Math.floor(Math.random() * ports.ofPart);

function nextPort(): number {
  walked = (walked + 1) % ports.ofPart;
  return ports.from + part * ports.ofPart + walked;
}

/** Different free ports on 127.0.0.1. */
export async function freePorts(count: number): Promise<number[]> {
  const servers: Server[] = [];
  const free: number[] = [];
  while (free.length < count) {
    const port = nextPort();
    const server = createServer();
    const bound = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => resolve(true));
    });
    if (!bound) continue;
    servers.push(server);
    free.push(port);
  }
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return free;
}

/** Thrown by the function passed to `eventually` when the condition can no longer come true. */
export class NoUseWaiting extends Error {}

/** Calls `ask` until it returns a value. @throws NoUseWaiting at once; Error naming `what` after `timeoutMs` */
export async function eventually<T>(
  what: string,
  ask: () => Promise<T | undefined>,
  timeoutMs = 20_000,
  everyMs = 50,
): Promise<T> {
  const until = performance.now() + timeoutMs;
  let last: unknown;
  while (performance.now() < until) {
    try {
      const answer = await ask();
      if (answer !== undefined) return answer;
    } catch (error) {
      if (error instanceof NoUseWaiting) throw error;
      last = error;
    }
    await delay(everyMs);
  }
  const reason = last instanceof Error ? `: ${last.message}` : '';
  throw new Error(`timed out after ${timeoutMs} ms waiting until ${what}${reason}`);
}

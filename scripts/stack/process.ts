/**
 * Programs of this project as child processes: started from TypeScript or from the build, whichever runs this file.
 * What the demo, the end-to-end tests and the benchmarks stand on; not part of the service.
 */
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { Server } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

export interface RunningProgram {
  readonly child: ChildProcess;
  readonly pid: number;
  /** Everything printed so far, bounded to the last 256 KiB. */
  output(): string;
  exited(): boolean;
  /** Sends the signal and waits for the end; SIGKILL after `timeoutMs`. Returns the exit code, null after a signal. */
  stop(signal?: NodeJS.Signals, timeoutMs?: number): Promise<number | null>;
}

const keptOutput = 256 * 1024;

export interface ProgramOptions {
  /** Folder whose `src/` is run: a copy of this project that is another release. This project's own when absent. */
  readonly root?: string;
}

/** Starts `src/<name>` of this project, for example `main` or `agent/main`, with exactly this environment added. */
export function startProgram(
  name: string,
  env: { readonly [name: string]: string },
  args: readonly string[] = [],
  options: ProgramOptions = {},
): RunningProgram {
  const fromSource = import.meta.url.endsWith('.ts');
  const root = options.root ?? fileURLToPath(new URL('../..', import.meta.url));
  const entry = join(root, 'src', `${name}.${fromSource ? 'ts' : 'js'}`);
  const command = fromSource ? ['--import', 'tsx', entry] : ['--enable-source-maps', entry];
  const inherited = Object.fromEntries(Object.entries(process.env).filter(([key]) => !key.startsWith('SVC_')));
  const child = spawn(process.execPath, [...command, ...args], {
    env: { ...inherited, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  const keep = (chunk: Buffer): void => {
    output = (output + chunk.toString('utf8')).slice(-keptOutput);
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

/** Below the ports that systems give to outgoing connections: nobody gets one of these while nothing listens there. */
const ports = { from: 12_000, to: 30_000 };

/** Ports on 127.0.0.1 that are free, each another one; they stay so until somebody is told to listen there. */
export async function freePorts(count: number): Promise<number[]> {
  const held: Server[] = [];
  const found: number[] = [];
  while (found.length < count) {
    const port = ports.from + Math.floor(Math.random() * (ports.to - ports.from));
    const server = createServer();
    const free = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => resolve(true));
    });
    if (!free) continue;
    held.push(server);
    found.push(port);
  }
  await Promise.all(held.map((server) => new Promise((resolve) => server.close(resolve))));
  return found;
}

/** Thrown by what `eventually` asks: it can't come true any more. */
export class NoUseWaiting extends Error {}

/** Asks until the answer is not undefined. @throws NoUseWaiting at once; Error naming `what` after `timeoutMs` */
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
  throw new Error(`${what} did not come true within ${timeoutMs} ms${reason}`);
}

/** Starts a program of the tests as a process and reads its lines. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { compiledRoot } from '../../../scripts/stack/process.js';

export interface Child {
  readonly process: ChildProcess;
  readonly lines: string[];
  /** The end of its standard error. */
  errors(): string;
  /** Resolves with the first matching line, even if it was printed before the call. */
  line(fits: (line: string) => boolean, timeoutMs?: number): Promise<string>;
  stop(signal: 'SIGKILL' | 'SIGTERM'): Promise<void>;
}

/**
 * @param program of `test/`, for example `storage/children/appender`
 * @param before precedes the command line
 */
export function startChild(program: string, args: readonly string[], before: readonly string[] = []): Child {
  const path = join(compiledRoot, 'test', `${program}.js`);
  const [command = '', ...rest] = [...before, process.execPath, path, ...args];
  const child = spawn(command, rest, { stdio: ['ignore', 'pipe', 'pipe'] });
  const lines: string[] = [];
  let errors = '';
  let wake = (): void => undefined;
  createInterface({ input: child.stdout }).on('line', (line) => {
    lines.push(line);
    wake();
  });
  child.stderr.on('data', (data: Buffer) => {
    errors = (errors + data.toString()).slice(-4000);
  });
  child.on('exit', () => wake());
  const ended = (): boolean => child.exitCode !== null || child.signalCode !== null;
  return {
    process: child,
    lines,
    errors: () => errors,
    async line(fits, timeoutMs = 20_000) {
      const until = Date.now() + timeoutMs;
      let scanned = 0;
      for (;;) {
        const match = lines.slice(scanned).find(fits);
        if (match !== undefined) return match;
        scanned = lines.length;
        if (ended() || Date.now() > until) {
          throw new Error(`the child did not say it: ${lines.slice(-5).join(' | ')} ${errors}`);
        }
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, 200);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
    },
    async stop(signal) {
      if (ended()) return;
      child.kill(signal);
      await once(child, 'exit');
    },
  };
}

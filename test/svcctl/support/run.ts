/**
 * Runs `svcctl` as a person or a script does: with pipes, or on a terminal of its own. A process takes a quarter of a
 * second of processor time to start, so most runs are calls in the test's process, which has no terminal either.
 */
import { spawn, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { execPath } from 'node:process';
import { projectRoot } from '../../support/project-root.js';
import { runHere, type Ran } from './run-here.js';

const program = join(projectRoot, 'cli/bin/svcctl.js');
const timeoutMs = 60_000;

/** Whether terminals can be made here. */
export const terminals = spawnSync('script', ['--version'], { timeout: timeoutMs }).status === 0;

export interface Runner {
  /** Without a terminal, in the test's process. */
  run(args: readonly string[], given?: { readonly env?: Record<string, string> }): Promise<Ran>;
  /** With pipes, in a process of its own. */
  runAlone(
    args: readonly string[],
    given?: { readonly input?: string; readonly env?: Record<string, string>; readonly cwd?: string },
  ): Promise<Ran>;
  /** With a stdout that nobody reads. @returns the exit code */
  unread(args: readonly string[]): Promise<number | null>;
  /** With pipes, until it is stopped. */
  follow(args: readonly string[]): { text(): string; stop(): Promise<void> };
  /**
   * On a terminal.
   * @param answers to texts that come, in this order
   * @param size columns and rows
   * @returns all that the terminal shows, as `out`
   */
  onTerminal(
    args: readonly string[],
    answers?: readonly (readonly [text: string, answer: string])[],
    size?: readonly [number, number],
  ): Promise<Ran>;
}

/** @param env the environment of every run, beside PATH */
export function createRunner(env: Record<string, string>): Runner {
  const environment = { PATH: process.env['PATH'] ?? '', TERM: 'xterm', ...env };
  return {
    run: (args, { env: more = {} } = {}) => runHere(args, { ...environment, ...more }),
    runAlone(args, { input = '', env: more = {}, cwd } = {}) {
      const child = spawn(execPath, [program, ...args], {
        env: { ...environment, ...more },
        timeout: timeoutMs,
        ...(cwd === undefined ? {} : { cwd }),
      });
      child.stdin.on('error', () => undefined);
      child.stdin.end(input);
      return collected(child);
    },
    unread(args) {
      const child = spawn(execPath, [program, ...args], { env: environment, timeout: timeoutMs });
      child.stdout.destroy();
      return new Promise((resolve) => child.on('close', resolve));
    },
    follow(args) {
      const child = spawn(execPath, [program, ...args], { env: environment, timeout: timeoutMs });
      let out = '';
      child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
      const closed = new Promise<void>((resolve) => child.on('close', () => resolve()));
      return {
        text: () => out,
        async stop() {
          child.kill();
          await closed;
        },
      };
    },
    onTerminal(args, answers = [], [columns, rows] = [120, 40]) {
      const words = [execPath, program, ...args].map((word) => `'${word.replaceAll("'", `'\\''`)}'`);
      const command = `stty cols ${columns} rows ${rows}; exec ${words.join(' ')}`;
      const child = spawn('script', ['-qefc', command, '/dev/null'], { env: environment, timeout: timeoutMs });
      child.stdin.on('error', () => undefined);
      const left = [...answers];
      return collected(child, (shown) => {
        const [next] = left;
        if (next === undefined || !shown.includes(next[0])) return false;
        left.shift();
        child.stdin.write(next[1]);
        return true;
      });
    },
  };
}

/** @param onShown looks at what came since it returned true last */
function collected(child: ReturnType<typeof spawn>, onShown: (shown: string) => boolean = () => false): Promise<Ran> {
  return new Promise((resolve, reject) => {
    let [out, err, since] = ['', '', ''];
    child.stdout?.on('data', (chunk: Buffer) => {
      out += chunk.toString();
      since += chunk.toString();
      if (onShown(since)) since = '';
    });
    child.stderr?.on('data', (chunk: Buffer) => (err += chunk.toString()));
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, out, err }));
  });
}

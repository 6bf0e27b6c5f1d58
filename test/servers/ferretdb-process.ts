/**
 * FerretDB as a separate process on a free port of 127.0.0.1, with its data in a temporary folder. A test can kill,
 * freeze and restart it on the same port. Built by `npm run test:servers`.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { freePorts } from '../../scripts/stack/process.js';
import { temporaryFolder } from '../storage/contract/temporary-folder.js';
import { freeze } from '../support/freeze.js';
import { projectRoot } from '../support/project-root.js';

export const ferretDbBinary = join(projectRoot, 'dist', 'test-servers', 'ferretdb');

export interface FerretDb {
  /** `mongodb://127.0.0.1:port`, without a database. */
  readonly url: string;
  /** Kills the process, like a crash. */
  kill(): Promise<void>;
  /** Starts again with the same data on the same port. */
  restart(): Promise<void>;
  /** Freezes the process: connections stay open, and nothing is answered. */
  freeze(): Promise<void>;
  thaw(): void;
  close(): Promise<void>;
}

const startWithinMs = 20_000;

async function launch(data: string, port: string): Promise<{ child: ChildProcess; port: string }> {
  const child = spawn(ferretDbBinary, ['-data', data, '-listen', `127.0.0.1:${port}`, '-end-with-stdin'], {
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const lines = createInterface({ input: child.stdout });
  const [line] = (await Promise.race([
    once(lines, 'line', { signal: AbortSignal.timeout(startWithinMs) }),
    once(child, 'exit').then(([code]) => {
      throw new Error(`FerretDB exited with ${code} at its start`);
    }),
  ])) as [string];
  const listeningPort = /^mongodb:\/\/127\.0\.0\.1:(\d+)\/$/.exec(line)?.[1];
  if (listeningPort === undefined) throw new Error(`FerretDB said ${line}`);
  return { child, port: listeningPort };
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill(signal);
  await exited;
}

/** @param port of 127.0.0.1; a free one when absent */
export async function startFerretDb(port?: number): Promise<FerretDb> {
  const folder = await temporaryFolder();
  const [free] = await freePorts(1);
  let running = await launch(folder.path, String(port ?? free));
  return {
    url: `mongodb://127.0.0.1:${running.port}`,
    kill: () => end(running.child, 'SIGKILL'),
    async restart() {
      await end(running.child, 'SIGKILL');
      running = await launch(folder.path, running.port);
    },
    freeze: () => freeze(running.child),
    thaw: () => void running.child.kill('SIGCONT'),
    async close() {
      await end(running.child, 'SIGKILL');
      await folder.remove();
    },
  };
}

/** Whether suites that need it can run. */
export const ferretDbBuilt = (): boolean => existsSync(ferretDbBinary);

/**
 * The EventStoreDB test server as a separate process on 127.0.0.1, with its log in a temporary folder. A test can kill,
 * freeze and restart it on the same port, and inject faults.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { compiledRoot, freePorts } from '../../scripts/stack/process.js';
import { temporaryFolder } from '../storage/contract/temporary-folder.js';
import { freeze } from '../support/freeze.js';
import type { AppendFault } from './eventstoredb/faults.js';

export interface EventStoreDbProcess {
  /** For `SVC_EVENTSTORE_URL`. */
  readonly url: string;
  readonly port: number;
  /** Kills the process, like a crash. */
  kill(): Promise<void>;
  /** Starts again with the same log on the same port. */
  restart(): Promise<void>;
  /** Freezes the process: connections stay open, and nothing is answered. */
  freeze(): Promise<void>;
  thaw(): void;
  /** Faults of the next appends, one each; a kill discards them. */
  failAppends(faults: readonly AppendFault[]): void;
  close(): Promise<void>;
}

const startWithinMs = 40_000;
const main = join(compiledRoot, 'test', 'servers', 'eventstoredb', 'main.js');

async function launch(folder: string, port: number): Promise<{ child: ChildProcess; port: number }> {
  const child = spawn(process.execPath, [main, folder, String(port)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  // Ignores writes to a process that was just killed.
  child.stdin.on('error', () => undefined);
  const lines = createInterface({ input: child.stdout });
  const [line] = (await Promise.race([
    once(lines, 'line', { signal: AbortSignal.timeout(startWithinMs) }),
    once(child, 'exit').then(([code]) => {
      throw new Error(`the event store exited with ${code} at its start`);
    }),
  ])) as [string];
  const listeningPort = /^listening (\d+)$/.exec(line)?.[1];
  if (listeningPort === undefined) throw new Error(`the event store said ${line}`);
  return { child, port: Number(listeningPort) };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

/** @param port of 127.0.0.1; a free one when absent @throws Error when it does not start */
export async function startEventStoreDbProcess(port?: number): Promise<EventStoreDbProcess> {
  const folder = await temporaryFolder();
  const [free = 0] = await freePorts(1);
  let running = await launch(folder.path, port ?? free);
  return {
    url: `esdb://127.0.0.1:${running.port}?tls=false`,
    port: running.port,
    kill: () => end(running.child),
    async restart() {
      await end(running.child);
      running = await launch(folder.path, running.port);
    },
    freeze: () => freeze(running.child),
    thaw: () => void running.child.kill('SIGCONT'),
    failAppends: (appends) => void running.child.stdin?.write(`${JSON.stringify({ appends })}\n`),
    async close() {
      await end(running.child);
      await folder.remove();
    },
  };
}

/**
 * The EventStoreDB test server as a process of a test's own: on 127.0.0.1, with its data in a temporary folder, that can
 * be killed, held still for a while and started again on the same port.
 */
import { startChild } from '../storage/children/start-child.js';
import type { Child } from '../storage/children/start-child.js';
import { temporaryFolder } from '../storage/contract/temporary-folder.js';

export interface EventStoreDbProcess {
  readonly port: number;
  /** At once, as by a crash. */
  kill(): Promise<void>;
  /** With the same data, on the same port. */
  restart(): Promise<void>;
  /** Holds the process still: connections stay open, nothing is answered. */
  freeze(): void;
  thaw(): void;
  close(): Promise<void>;
}

async function launch(data: string, port: number): Promise<{ child: Child; port: number }> {
  const child = startChild('../../servers/eventstoredb/main.ts', [data, String(port)]);
  const line = await child.line((text) => text.startsWith('listening '), 30_000);
  return { child, port: Number(line.split(' ')[1]) };
}

/** @param port of 127.0.0.1; a free one when absent */
export async function startEventStoreDbProcess(port = 0): Promise<EventStoreDbProcess> {
  const folder = await temporaryFolder();
  let running = await launch(folder.path, port);
  return {
    port: running.port,
    kill: () => running.child.stop('SIGKILL'),
    async restart() {
      await running.child.stop('SIGKILL');
      running = await launch(folder.path, running.port);
    },
    freeze: () => void running.child.process.kill('SIGSTOP'),
    thaw: () => void running.child.process.kill('SIGCONT'),
    async close() {
      await running.child.stop('SIGKILL');
      await folder.remove();
    },
  };
}

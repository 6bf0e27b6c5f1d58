/**
 * The thread's side of a worker: serves one job after the other, each a conversation with the main thread. Not which jobs
 * there are (`src/worker.ts`), nor the main thread's side (`pool.ts`).
 */
import { parentPort } from 'node:worker_threads';
import { errorText } from '../kernel/errors.js';
import type { ToMain, ToThread } from './messages.js';

export interface JobPort {
  send(message: unknown): void;
  /** The next message of the main thread, in the order in which they were sent. */
  receive(): Promise<unknown>;
}

/** Serves one conversation; what it throws fails the job. */
export type Job = (port: JobPort) => Promise<void>;

/** Serves the jobs until the thread is ended. @throws Error in the main thread */
export function serveJobs(jobs: Readonly<Record<string, Job>>): void {
  if (parentPort === null) throw new Error('this program is started as a worker thread, not by itself');
  const port = parentPort;
  const inbox: unknown[] = [];
  let take: ((message: unknown) => void) | undefined;
  const tell = (message: ToMain): void => port.postMessage(message);
  const jobPort: JobPort = {
    send: (message) => tell({ kind: 'message', message }),
    receive: () =>
      inbox.length > 0
        ? Promise.resolve(inbox.shift())
        : new Promise((resolve) => {
            take = resolve;
          }),
  };

  const run = async (name: string): Promise<void> => {
    const job = Object.hasOwn(jobs, name) ? jobs[name] : undefined;
    try {
      if (job === undefined) throw new Error(`no worker knows the job ${name}`);
      await job(jobPort);
      tell({ kind: 'ended' });
    } catch (error) {
      tell({ kind: 'failed', error: errorText(error) });
    }
  };

  port.on('message', (item: ToThread) => {
    if (item.kind === 'job') {
      inbox.length = 0;
      void run(item.name);
      return;
    }
    const waiting = take;
    take = undefined;
    if (waiting === undefined) inbox.push(item.message);
    else waiting(item.message);
  });
}

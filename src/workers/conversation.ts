/**
 * One worker thread as the main thread sees it: sends and receives the messages of a job, and fails both once the thread
 * is lost, the job has failed, time is up or the service stops. Not how many threads there are (`pool.ts`).
 */
import { Worker } from 'node:worker_threads';
import type { Transferable } from 'node:worker_threads';
import { withDeadline } from '../kernel/background.js';
import { errorText, unreachable } from '../kernel/errors.js';
import type { ToMain, ToThread } from './messages.js';
import { tuning } from './tuning.js';

/** The main thread's side of a job. */
export interface Conversation {
  /** @throws what ended the conversation */
  send(message: unknown, transfer?: readonly Transferable[]): void;
  /** The job's next message. Rejects with what ended the conversation. */
  receive(): Promise<unknown>;
}

/** The thread ended by itself: it crashed, or needed more memory than it may have. */
export class WorkerLostError extends Error {
  constructor(reason: string) {
    super(`a worker thread was lost: ${reason}`);
    this.name = 'WorkerLostError';
  }
}

export interface Thread {
  /** Begins a job. Talk about the one before must be over. */
  begin(job: string): Conversation;
  /** Resolves once the job has returned; rejects with what ended the conversation. */
  ended(): Promise<void>;
  /** Ends the conversation. */
  fail(error: Error): void;
  /** Rejects with what ended the conversation, as soon as that happens. */
  failed(): Promise<never>;
  /** Called when the thread is lost while it has no job. */
  onLost(listener: () => void): void;
  end(): Promise<void>;
}

/**
 * The entry of a thread that lies beside a module.
 * @param base `import.meta.url` of the module, whose ending the entry has as well: TypeScript in development
 */
export function entryBeside(base: string, name: string): URL {
  return new URL(`./${name}${base.endsWith('.ts') ? '.ts' : '.js'}`, base);
}

/** What a thread begins with: the entry, or what has TypeScript compiled as it is loaded, as `npm run dev` does. */
function programOf(entry: URL): URL {
  if (!entry.pathname.endsWith('.ts')) return entry;
  // A development package, which is there where TypeScript is run.
  const compiler = import.meta.resolve('tsx/esm/api');
  const text = `import { register } from ${JSON.stringify(compiler)}; register(); await import(${JSON.stringify(entry.href)});`;
  return new URL(`data:text/javascript,${encodeURIComponent(text)}`);
}

export function startThread(entry: URL): Thread {
  const worker = new Worker(programOf(entry), {
    // Settings of the service, secrets among them, are nothing for a thread that only computes.
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: tuning.heapMiB, stackSizeMb: tuning.stackMiB },
  });
  // A thread keeps no process alive.
  worker.unref();
  const inbox: ToMain[] = [];
  let failure: Error | undefined;
  let take: (() => void) | undefined;
  let lost = (): void => undefined;
  let rejectFailed: (error: Error) => void = () => undefined;
  const failed = new Promise<never>((_, reject) => {
    rejectFailed = reject;
  });
  // Without a job nobody waits for it.
  failed.catch(() => undefined);

  const wake = (): void => {
    take?.();
    take = undefined;
  };
  const fail = (error: Error): void => {
    failure ??= error;
    rejectFailed(failure);
    wake();
  };
  worker.on('message', (message: ToMain) => {
    inbox.push(message);
    wake();
  });
  worker.on('messageerror', (error) => fail(new WorkerLostError(errorText(error))));
  worker.on('error', (error) => {
    fail(new WorkerLostError(errorText(error)));
    lost();
  });
  worker.on('exit', (code) => {
    fail(new WorkerLostError(`it ended with code ${code}`));
    lost();
  });

  const next = async (): Promise<ToMain> => {
    for (;;) {
      if (failure !== undefined) throw failure;
      const message = inbox.shift();
      if (message !== undefined) return message;
      await new Promise<void>((resolve) => {
        take = resolve;
      });
    }
  };
  const post = (message: ToThread, transfer: readonly Transferable[] = []): void => {
    if (failure !== undefined) throw failure;
    worker.postMessage(message, transfer);
  };

  return {
    begin(name) {
      post({ kind: 'job', name });
      return {
        send: (message, transfer) => post({ kind: 'message', message }, transfer),
        async receive() {
          const item = await next();
          switch (item.kind) {
            case 'message':
              return item.message;
            case 'ended':
              throw new Error('the job of a worker thread returned before it had answered');
            case 'failed':
              throw new Error(item.error);
            default:
              return unreachable(item);
          }
        },
      };
    },
    async ended() {
      for (;;) {
        const item = await next();
        if (item.kind === 'ended') return;
        if (item.kind === 'failed') throw new Error(item.error);
      }
    },
    fail,
    failed: () => failed,
    onLost(listener) {
      lost = listener;
    },
    async end() {
      fail(new WorkerLostError('it was ended'));
      await withDeadline(worker.terminate(), tuning.endMs);
    },
  };
}

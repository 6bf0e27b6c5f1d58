/** Worker threads that only compute: how one is started, and what becomes of one that fails. */
import { Worker } from 'node:worker_threads';
import type { ResourceLimits } from 'node:worker_threads';
import { errorText } from './errors.js';

/** The thread failed: it threw, or needed more memory than it may have. */
export class ThreadLostError extends Error {
  /** It needed more than its limits, and did nothing wrong otherwise. */
  readonly outOfMemory: boolean;

  constructor(reason: string, outOfMemory = false) {
    super(`a worker thread was lost: ${reason}`);
    this.outOfMemory = outOfMemory;
    this.name = 'ThreadLostError';
  }
}

export interface ThreadOptions {
  readonly workerData: unknown;
  /** A thread that needs more ends, and the process goes on. */
  readonly resourceLimits: ResourceLimits;
  /** Called when the thread ends by itself, and when it is ended. */
  lost(error: ThreadLostError): void;
}

/** @param entry the thread's program, see `threadBeside` */
export function startThread(entry: URL, { workerData, resourceLimits, lost }: ThreadOptions): Worker {
  // Settings of the service, secrets among them, are not for a thread that only computes.
  const worker = new Worker(programOf(entry), { workerData, env: {}, resourceLimits });
  // A thread keeps no process alive.
  worker.unref();
  // Never removed: an error without a listener would end the process.
  worker.on('error', (error: NodeJS.ErrnoException) =>
    lost(new ThreadLostError(errorText(error), error.code === 'ERR_WORKER_OUT_OF_MEMORY')),
  );
  worker.on('messageerror', (error) => lost(new ThreadLostError(errorText(error))));
  worker.on('exit', (code) => lost(new ThreadLostError(`it ended with code ${code}`)));
  return worker;
}

/** The program `name` beside a module, TypeScript if the module is. @param module its `import.meta.url` */
export function threadBeside(module: string, name: string): URL {
  return new URL(`./${name}${module.endsWith('.ts') ? '.ts' : '.js'}`, module);
}

/** The program of a thread, with a compiler before it where it is TypeScript, as in `npm run dev`. */
function programOf(entry: URL): URL {
  if (!entry.pathname.endsWith('.ts')) return entry;
  // A development package, which is installed wherever TypeScript is run.
  const compiler = import.meta.resolve('tsx/esm/api');
  const text = `import { register } from ${JSON.stringify(compiler)}; register(); await import(${JSON.stringify(entry.href)});`;
  return new URL(`data:text/javascript,${encodeURIComponent(text)}`);
}

/** Worker threads that only compute: how they start, fail and end. */
import { Worker, type ResourceLimits } from 'node:worker_threads';
import { unlessAborted, withDeadline } from './background.js';
import { errorText } from './errors.js';

/** The thread failed: it threw, or needed more memory than allowed. */
export class ThreadLostError extends Error {
  /** It exceeded its memory limits, and did nothing else wrong. */
  readonly outOfMemory: boolean;

  constructor(reason: string, outOfMemory = false) {
    super(`a worker thread was lost: ${reason}`);
    this.outOfMemory = outOfMemory;
    this.name = 'ThreadLostError';
  }
}

interface ThreadOptions {
  readonly workerData: unknown;
  /** A thread that needs more is ended, and the process continues. */
  readonly resourceLimits: ResourceLimits;
  /** Ends the thread. */
  readonly signal: AbortSignal;
}

const endMs = 5_000;

/**
 * Starts a thread, and ends it after use.
 * @param entry the thread's program, see `threadBeside`
 * @param use gets a signal that also aborts when the thread ends by itself
 * @throws ThreadLostError, or the reason of the signal, neither of which waits for `use`; what `use` throws
 */
export async function withThread<T>(
  entry: URL,
  { workerData, resourceLimits, signal }: ThreadOptions,
  use: (worker: Worker, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const failed = new AbortController();
  const ends = AbortSignal.any([signal, failed.signal]);
  const lost = (error: ThreadLostError): void => failed.abort(error);
  // A thread that only computes does not get the service's settings, which include secrets.
  const worker = new Worker(programOf(entry), { workerData, env: {}, resourceLimits });
  // A thread does not keep the process alive.
  worker.unref();
  // Never removed: an error without a listener would end the process.
  worker.on('error', (error: NodeJS.ErrnoException) =>
    lost(new ThreadLostError(errorText(error), error.code === 'ERR_WORKER_OUT_OF_MEMORY')),
  );
  worker.on('messageerror', (error) => lost(new ThreadLostError(errorText(error))));
  worker.on('exit', (code) => lost(new ThreadLostError(`it ended with code ${code}`)));
  try {
    return await unlessAborted(use(worker, ends), ends);
  } finally {
    failed.abort();
    await withDeadline(worker.terminate(), endMs);
  }
}

/** The program `name` in the folder of a module, TypeScript if the module is. @param module its `import.meta.url` */
export function threadBeside(module: string, name: string): URL {
  return new URL(`./${name}${module.endsWith('.ts') ? '.ts' : '.js'}`, module);
}

/** The program of a thread, preceded by a compiler if it is TypeScript, as in `npm run dev`. */
function programOf(entry: URL): URL {
  if (!entry.pathname.endsWith('.ts')) return entry;
  // A development dependency, installed wherever TypeScript runs.
  const compiler = import.meta.resolve('tsx/esm/api');
  const text = `import { register } from ${JSON.stringify(compiler)}; register(); await import(${JSON.stringify(entry.href)});`;
  return new URL(`data:text/javascript,${encodeURIComponent(text)}`);
}

/**
 * The thread that runs the tests of one mutant after another. Vitest ends its threads after each run, and to load the
 * service's modules again takes longer than most tests. A mutant can leave sockets, timers and module state behind, so the
 * thread is replaced after some runs, and whenever a run does not end well (Stryker then replaces the whole process).
 */
import { EventEmitter } from 'node:events';
import {
  ThreadsPoolWorker,
  type PoolOptions,
  type PoolRunnerInitializer,
  type PoolWorker,
  type WorkerRequest,
} from 'vitest/node';

/**
 * @param runsPerThread after how many runs a new thread is taken; 1: each run has its own, as in the ordinary suite
 */
export function keptThread(runsPerThread: number): PoolRunnerInitializer {
  let kept: { readonly thread: ThreadsPoolWorker; runs: number } | undefined;

  const createPoolWorker = (options: PoolOptions): PoolWorker => {
    const events = new EventEmitter();
    const forward = {
      message: (value: unknown) => events.emit('message', value),
      error: (value: unknown) => events.emit('error', value),
      exit: (value: unknown) => events.emit('exit', value),
    };
    let thread: ThreadsPoolWorker | undefined;

    return {
      name: 'kept-thread',
      on: (event, callback) => void events.on(event, callback),
      off: (event, callback) => void events.off(event, callback),
      send(message: WorkerRequest) {
        // The thread takes no more work after it is told to stop, so it does not hear of it.
        if ('type' in message && message.type === 'stop')
          queueMicrotask(() => events.emit('message', { type: 'stopped', __vitest_worker_response__: true }));
        else thread?.send(message);
      },
      deserialize: (data) => data,
      async start() {
        if (kept === undefined) {
          kept = { thread: new ThreadsPoolWorker(options), runs: 0 };
          await kept.thread.start();
        }
        kept.runs += 1;
        thread = kept.thread;
        for (const [event, callback] of Object.entries(forward)) thread.on(event, callback);
      },
      async stop() {
        if (thread === undefined) return;
        for (const [event, callback] of Object.entries(forward)) thread.off(event, callback);
        events.removeAllListeners();
        if (kept !== undefined && kept.runs >= runsPerThread) {
          kept = undefined;
          await thread.stop();
        }
        thread = undefined;
      },
    };
  };

  return { name: 'kept-thread', createPoolWorker };
}

/**
 * Runs the asynchronous tasks of one session in order, one at a time, each within a time limit. The owner bounds it: it
 * watches `size` and stops reading from the agent.
 */
import { timedOut, withDeadline } from '../../kernel/background.js';
import { tuning } from './tuning.js';

interface SerialQueue {
  run(task: () => Promise<void>): void;
  /** Tasks that wait or run. */
  readonly size: number;
  /** Drops the waiting tasks; the running one is left to finish. */
  close(): void;
}

/**
 * @param onFailed a task threw or took too long
 * @param onProgress a task has finished, whether or not it failed
 */
export function createSerialQueue(onFailed: (error: unknown) => void, onProgress: () => void): SerialQueue {
  const waiting: (() => Promise<void>)[] = [];
  let running = false;

  const runAll = async (): Promise<void> => {
    running = true;
    for (let task = waiting.shift(); task !== undefined; task = waiting.shift()) {
      try {
        if ((await withDeadline(task(), tuning.serialQueueTimeoutMs)) === timedOut)
          onFailed(new Error('no answer in time'));
      } catch (error) {
        onFailed(error);
      }
      onProgress();
    }
    running = false;
  };

  return {
    run(task) {
      waiting.push(task);
      if (!running) void runAll();
    },
    get size() {
      return waiting.length + (running ? 1 : 0);
    },
    close() {
      waiting.length = 0;
    },
  };
}

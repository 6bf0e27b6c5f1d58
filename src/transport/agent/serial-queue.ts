/**
 * Does the asynchronous work of one session in the order it came, one thing at a time, each within a time limit.
 * Bounded by its owner, who looks at `size` and stops reading.
 */
import { timedOut, withDeadline } from '../../kernel/background.js';
import { tuning } from './tuning.js';

export interface Lane {
  run(work: () => Promise<void>): void;
  /** Works that wait or run. */
  readonly size: number;
  /** Forgets what waits; what runs ends by itself. */
  close(): void;
}

/**
 * @param onFailed a work has thrown or took too long
 * @param onProgress a work is done
 */
export function createLane(onFailed: (error: unknown) => void, onProgress: () => void): Lane {
  const waiting: (() => Promise<void>)[] = [];
  let running = false;

  const turn = async (): Promise<void> => {
    running = true;
    for (let work = waiting.shift(); work !== undefined; work = waiting.shift()) {
      try {
        if ((await withDeadline(work(), tuning.serialQueueTimeoutMs)) === timedOut)
          onFailed(new Error('no answer in time'));
      } catch (error) {
        onFailed(error);
      }
      onProgress();
    }
    running = false;
  };

  return {
    run(work) {
      waiting.push(work);
      if (!running) void turn();
    },
    get size() {
      return waiting.length + (running ? 1 : 0);
    },
    close() {
      waiting.length = 0;
    },
  };
}

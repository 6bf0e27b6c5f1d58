/**
 * Runs the asynchronous tasks of one session in order, one at a time, each within a time limit. The owner bounds it: it
 * watches `size` and stops reading from the agent.
 */
import { timedOut, withDeadline } from '../../kernel/background.js';
import { tuning } from './tuning.js';

export interface SerialQueue {
  run(task: () => Promise<void>): void;
  /** Tasks that wait or run. */
  readonly size: number;
  /** Drops the waiting tasks; the running one is left to finish. */
  close(): void;
}

interface QueueOwner {
  /** A task threw or took too long. */
  onFailed(error: unknown): void;
  /** A task has finished, whether or not it failed. */
  onProgress(): void;
}

/** A class, because there are two for each agent: see `src/noise/cipher-state.ts`. */
class TasksInOrder implements SerialQueue {
  readonly #owner: QueueOwner;
  /** Undefined until a task has to wait, which is seldom. */
  #waiting: (() => Promise<void>)[] | undefined;
  #running = false;

  constructor(owner: QueueOwner) {
    this.#owner = owner;
  }

  run(task: () => Promise<void>): void {
    if (this.#running) (this.#waiting ??= []).push(task);
    else void this.#runFrom(task);
  }
  get size(): number {
    return (this.#waiting?.length ?? 0) + (this.#running ? 1 : 0);
  }
  close(): void {
    this.#waiting = undefined;
  }
  async #runFrom(first: () => Promise<void>): Promise<void> {
    this.#running = true;
    for (let task: typeof first | undefined = first; task !== undefined; task = this.#waiting?.shift()) {
      try {
        if ((await withDeadline(task(), tuning.serialQueueTimeoutMs)) === timedOut)
          this.#owner.onFailed(new Error('no answer in time'));
      } catch (error) {
        this.#owner.onFailed(error);
      }
      this.#owner.onProgress();
    }
    this.#running = false;
  }
}

export function createSerialQueue(owner: QueueOwner): SerialQueue {
  return new TasksInOrder(owner);
}

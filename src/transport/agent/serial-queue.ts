/**
 * Runs the asynchronous tasks of one session in order, one at a time, each within a time limit. The owner bounds the
 * queue: it watches `size` and stops reading from the agent.
 */
import { timedOut, withDeadline } from '../../kernel/background.js';

/** If delivery or the command store answers more slowly, the session ends with DRAINING. */
const serialQueueTimeoutMs = 30_000;

interface QueueOwner {
  /** A task threw or took too long. */
  onFailed(error: unknown): void;
  /** A task has finished, whether or not it failed. */
  onProgress(): void;
}

interface Task {
  readonly run: () => Promise<void>;
  readonly passAfterMs: number | undefined;
}

/** A class, because each agent has two: see `src/channel/noise/cipher-state.ts`. */
export class SerialQueue {
  readonly #owner: QueueOwner;
  /** Undefined until a task has to wait, which is rare. */
  #waiting: Task[] | undefined;
  #running = false;

  constructor(owner: QueueOwner) {
    this.#owner = owner;
  }

  /**
   * @param passAfterMs after this time, the next task starts while this one finishes by itself; without it, a task that
   *   takes too long has failed
   */
  run(run: () => Promise<void>, passAfterMs?: number): void {
    const task: Task = { run, passAfterMs };
    if (this.#running) (this.#waiting ??= []).push(task);
    else void this.#runFrom(task);
  }
  /** Waiting and running tasks. */
  get size(): number {
    return (this.#waiting?.length ?? 0) + (this.#running ? 1 : 0);
  }
  /** Drops the waiting tasks; the running one is left to finish. */
  close(): void {
    this.#waiting = undefined;
  }
  async #runFrom(first: Task): Promise<void> {
    this.#running = true;
    for (let task: Task | undefined = first; task !== undefined; task = this.#waiting?.shift()) {
      const { run, passAfterMs } = task;
      try {
        const outcome = await withDeadline(run(), passAfterMs ?? serialQueueTimeoutMs);
        if (outcome === timedOut && passAfterMs === undefined) this.#owner.onFailed(new Error('no answer in time'));
      } catch (error) {
        this.#owner.onFailed(error);
      }
      this.#owner.onProgress();
    }
    this.#running = false;
  }
}

/**
 * Runs the asynchronous tasks of one session in order, one at a time, each within a time limit. The owner bounds it: it
 * watches `size` and stops reading from the agent.
 */
import { timedOut, withDeadline } from '../../kernel/background.js';

/** A slower answer of delivery or of the command store ends the session with DRAINING. */
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

/** A class, because there are two for each agent: see `src/channel/noise/cipher-state.ts`. */
export class SerialQueue {
  readonly #owner: QueueOwner;
  /** Undefined until a task has to wait, which is seldom. */
  #waiting: Task[] | undefined;
  #running = false;

  constructor(owner: QueueOwner) {
    this.#owner = owner;
  }

  /**
   * @param passAfterMs for a task that is left to finish by itself after this time while the next one begins; without it,
   * a task that takes too long has failed
   */
  run(run: () => Promise<void>, passAfterMs?: number): void {
    const task: Task = { run, passAfterMs };
    if (this.#running) (this.#waiting ??= []).push(task);
    else void this.#runFrom(task);
  }
  /** Tasks that wait or run. */
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

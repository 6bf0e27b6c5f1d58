/**
 * A few threads for work that would hold up the event loop: each job has a thread to itself while it runs. Callers wait in a
 * bounded queue, a job has a time limit, and one whose thread is lost fails alone: the next one gets a new thread. Threads
 * are started when they are needed, and end when they have been without work for a while.
 * Not what a job does: that is the talk of the caller here, and `src/worker.ts` there.
 */
import { ServiceError, errorText } from '../kernel/errors.js';
import type { Logger } from '../kernel/logger.js';
import { createSemaphore } from '../kernel/semaphore.js';
import type { Conversation, Thread } from './conversation.js';
import { startThread, WorkerLostError } from './conversation.js';
import { tuning } from './tuning.js';

export interface WorkerPool {
  /**
   * Runs a job. A talk that fails ends its thread, because nobody knows what the job would still send.
   * @param talk what the main thread says and hears; it gets no time of its own beside the job's
   * @throws ServiceError `unavailable` when the queue is full, time is up or the service stops; WorkerLostError; what the
   *   talk throws
   */
  run<T>(job: string, talk: (conversation: Conversation) => Promise<T>): Promise<T>;
  stats(): WorkerStats;
  /** Fails what runs and waits, and ends all threads. */
  close(): Promise<void>;
}

export interface WorkerStats {
  readonly threads: number;
  readonly busy: number;
  /** Threads that were lost since the start. */
  readonly lost: number;
}

export interface WorkerPoolOptions {
  /** The program of the threads (`entryBeside`). */
  readonly entry: URL;
  readonly logger: Logger;
  // Instead of those of `tuning.ts`.
  readonly threads?: number;
  readonly waiting?: number;
  readonly waitMs?: number;
  readonly jobMs?: number;
  readonly idleMs?: number;
}

export function createWorkerPool(options: WorkerPoolOptions): WorkerPool {
  const { entry, logger, threads, waiting, waitMs, jobMs, idleMs } = { ...tuning, ...options };
  const places = createSemaphore({ places: threads, waiting, waitMs });
  const all = new Set<Thread>();
  const running = new Set<Promise<unknown>>();
  const idle = new Map<Thread, NodeJS.Timeout>();
  let closed = false;
  let lost = 0;

  const stopping = (): ServiceError => new ServiceError('unavailable', 'the service is stopping');
  const retryLater = (message: string): ServiceError =>
    new ServiceError('unavailable', message, { hints: { retryAfterSeconds: tuning.retryAfterSeconds } });

  const endThread = async (thread: Thread): Promise<void> => {
    clearTimeout(idle.get(thread));
    idle.delete(thread);
    all.delete(thread);
    await thread.end();
  };

  const take = (): Thread => {
    for (const [thread, timer] of idle) {
      clearTimeout(timer);
      idle.delete(thread);
      return thread;
    }
    const thread = startThread(entry);
    all.add(thread);
    thread.onLost(() => {
      if (!idle.has(thread)) return;
      lost += 1;
      void endThread(thread);
    });
    return thread;
  };

  const keep = (thread: Thread): void => {
    const timer = setTimeout(() => void endThread(thread), idleMs);
    timer.unref();
    idle.set(thread, timer);
  };

  const runOn = async <T>(
    thread: Thread,
    job: string,
    talk: (conversation: Conversation) => Promise<T>,
  ): Promise<T> => {
    const timer = setTimeout(() => thread.fail(retryLater(`this took longer than ${jobMs / 1000} s`)), jobMs);
    try {
      // A talk may wait for something else, such as a store: it then fails later, and nobody listens any more.
      const talking = talk(thread.begin(job));
      const result = await Promise.race([talking, thread.failed()]);
      await thread.ended();
      clearTimeout(timer);
      keep(thread);
      return result;
    } catch (error) {
      clearTimeout(timer);
      if (error instanceof WorkerLostError) {
        lost += 1;
        logger.error({ job, error: errorText(error) }, 'a worker thread was lost; its job failed');
      }
      await endThread(thread);
      throw error;
    }
  };

  const run = async <T>(job: string, talk: (conversation: Conversation) => Promise<T>): Promise<T> => {
    const leave = await places.enter();
    if (leave === undefined) throw closed ? stopping() : retryLater('too many such requests at a time');
    try {
      if (closed) throw stopping();
      return await runOn(take(), job, talk);
    } finally {
      leave();
    }
  };

  return {
    run(job, talk) {
      const result = run(job, talk);
      const settled = result.then(
        () => undefined,
        () => undefined,
      );
      running.add(settled);
      void settled.then(() => running.delete(settled));
      return result;
    },
    stats: () => ({ threads: all.size, busy: all.size - idle.size, lost }),
    async close() {
      closed = true;
      places.close();
      for (const thread of all) thread.fail(stopping());
      await Promise.all([...running, ...[...idle.keys()].map(endThread)]);
    },
  };
}

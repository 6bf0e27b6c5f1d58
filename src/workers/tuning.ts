/** The numbers of the worker threads that no contract states. */
export const tuning = {
  /** Threads at a time. One: the machine's other core is the main thread's, and a fold of a large fleet takes memory. */
  threads: 1,
  /** Jobs that may wait for a thread, and for how long. */
  waiting: 16,
  waitMs: 30_000,
  /** How long one job may take: a log of a million events on a busy machine. */
  jobMs: 180_000,
  retryAfterSeconds: 5,
  /** A thread without work ends, and gives its memory back. */
  idleMs: 60_000,
  /** Heap of a thread. One that needs more ends, and the process goes on. */
  heapMiB: 2048,
  stackMiB: 4,
  /** How long a thread may take to end. */
  endMs: 5_000,
} as const;

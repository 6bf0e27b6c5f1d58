/**
 * A value that is slow to make and that many callers share: a caller gets one that was begun after its call, and at most
 * one is being made at a time. It keeps no value.
 */

/** @returns a function that gives such a value; it rejects with the error of `make`, and the next call tries again */
export function createShared<T>(make: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined;
  /** Starts as soon as the running one ends, for all who came too late for that one. */
  let next: Promise<T> | undefined;

  const start = (): Promise<T> => {
    next = undefined;
    running = make().finally(() => {
      running = undefined;
    });
    return running;
  };

  return () => {
    if (next !== undefined) return next;
    if (running === undefined) return start();
    return (next = running.then(start, start));
  };
}

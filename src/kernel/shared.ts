/**
 * A value that is slow to make and that many callers share: a caller gets one that was begun late enough, and at most
 * one is being made at a time. It holds one value; `lru.ts` holds many.
 */

/** One attempt to make the value. */
export interface Attempt {
  /** The value of `stamp` at its start. */
  readonly stamp: number;
  /** The value of `now` at its start, in milliseconds. */
  readonly begunAt: number;
  /** Undefined while it is running. */
  readonly tookMs: number | undefined;
}

export interface SharedOptions {
  /** A number that stands for the state the value depends on. */
  stamp(): number;
  /** Whether its value is fresh enough for a caller who asks now. */
  isFresh(attempt: Attempt): boolean;
  now(): number;
}

/** @returns a function that gives a fresh value; it rejects with the error of `make`, and the next call tries again */
export function createShared<T>(make: () => Promise<T>, { stamp, isFresh, now }: SharedOptions): () => Promise<T> {
  let made: { readonly attempt: Attempt; readonly value: T } | undefined;
  let running: { readonly attempt: Attempt; readonly value: Promise<T> } | undefined;
  /** Starts as soon as the running one ends, for all who came too late for that one. */
  let next: Promise<T> | undefined;

  const start = (): Promise<T> => {
    const attempt = { stamp: stamp(), begunAt: now(), tookMs: undefined };
    const value = make()
      .then((result) => {
        made = { attempt: { ...attempt, tookMs: now() - attempt.begunAt }, value: result };
        return result;
      })
      .finally(() => {
        running = undefined;
      });
    running = { attempt, value };
    return value;
  };

  return async () => {
    if (made !== undefined && isFresh(made.attempt)) return made.value;
    if (running === undefined) return start();
    if (isFresh(running.attempt)) return running.value;
    next ??= running.value
      .then(
        () => undefined,
        () => undefined,
      )
      .then(() => {
        next = undefined;
        return start();
      });
    return next;
  };
}

/**
 * One value, slow to make, that many callers share: a caller gets one whose making started late enough, and at most one
 * is being made at a time. It holds one value; `lru.ts` holds many.
 */

/** When the making of a value started. */
export interface Begun {
  /** The value of `stamp` at that time. */
  readonly stamp: number;
  /** The value of `now` at that time, in milliseconds. */
  readonly begunAt: number;
  /** How long it took, in milliseconds; undefined while it is being made. */
  readonly tookMs: number | undefined;
}

export interface SharedOptions {
  /** A number that stands for the state the value depends on. */
  stamp(): number;
  /** Whether a value started at that time is fresh enough for a caller who asks now. */
  isFresh(begun: Begun): boolean;
  now(): number;
}

/** @returns a function that gives a fresh value; it rejects with the error of `make`, and the next call tries again */
export function createShared<T>(make: () => Promise<T>, { stamp, isFresh, now }: SharedOptions): () => Promise<T> {
  let made: { readonly begun: Begun; readonly value: T } | undefined;
  let running: { readonly begun: Begun; readonly value: Promise<T> } | undefined;
  /** Starts as soon as the running one ends, for all who came too late for that one. */
  let next: Promise<T> | undefined;

  const start = (): Promise<T> => {
    const begun = { stamp: stamp(), begunAt: now(), tookMs: undefined };
    const value = make()
      .then((result) => {
        made = { begun: { ...begun, tookMs: now() - begun.begunAt }, value: result };
        return result;
      })
      .finally(() => {
        running = undefined;
      });
    running = { begun, value };
    return value;
  };

  return async () => {
    if (made !== undefined && isFresh(made.begun)) return made.value;
    if (running === undefined) return start();
    if (isFresh(running.begun)) return running.value;
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

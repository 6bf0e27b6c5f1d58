/**
 * Waits and loops that can be stopped: a sleep that an AbortSignal ends, a deadline around a promise, a loop with
 * `close()`. `retry.ts` says how long to wait between attempts.
 */
import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';

/** Any number may wait for a signal. Node takes the eleventh for a leak, but each wait here leaves nothing behind. */
const anyNumberWaits = (signal: AbortSignal): void => setMaxListeners(0, signal);

/** Node fires a timer for longer at once. */
const longestTimerMs = 2 ** 31 - 1;

/** Sleeps `ms`; ends early, without an error, when the signal aborts. */
export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal !== undefined) anyNumberWaits(signal);
  try {
    for (; ms > longestTimerMs; ms -= longestTimerMs) await delay(longestTimerMs, undefined, { signal });
    await delay(ms, undefined, { signal });
  } catch {
    // Aborted: the caller checks its signal.
  }
}

export const timedOut = Symbol('timed out');

/** The promise's value, or `timedOut` after `ms`. The promise itself is not cancelled. */
export function withDeadline<T>(promise: Promise<T>, ms: number): Promise<T | typeof timedOut> {
  // Written by hand: an async function with a race would create five more promises for each deadline.
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(timedOut), ms);
    promise.then(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      () => {
        clearTimeout(timer);
        // Rejects with the promise's own reason.
        resolve(promise);
      },
    );
  });
}

/** The promise's value; rejects with the signal's reason as soon as it aborts, or if it already has. */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const aborted = (): void => reject(signal.reason);
    if (signal.aborted) aborted();
    anyNumberWaits(signal);
    signal.addEventListener('abort', aborted, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', aborted));
  });
}

/**
 * Runs `use` with a signal that aborts with the first of `signals`, for the same reason, and when `use` is over. Each
 * call of `AbortSignal.any` attaches something to its signals for as long as they live; this leaves nothing attached.
 */
export async function withFirstOf<T>(
  signals: readonly AbortSignal[],
  use: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const first = new AbortController();
  const look = (): void => {
    const aborted = signals.find((signal) => signal.aborted);
    if (aborted !== undefined) first.abort(aborted.reason);
  };
  look();
  for (const signal of signals) {
    anyNumberWaits(signal);
    signal.addEventListener('abort', look, { once: true });
  }
  try {
    return await use(first.signal);
  } finally {
    for (const signal of signals) signal.removeEventListener('abort', look);
    first.abort();
  }
}

/** A caller that waits in a set, with its `about`. */
export type Waiting<About = unknown> = About & { answer(value: boolean): void };

/** Waits in a set, in order of arrival, until answered; false after `ms`. */
export function waitIn<About>(all: Set<Waiting<About>>, about: About, ms: number): Promise<boolean> {
  return new Promise((resolve) => {
    const waiting = {
      ...about,
      answer(value: boolean) {
        clearTimeout(timer);
        all.delete(waiting);
        resolve(value);
      },
    };
    const timer = setTimeout(() => waiting.answer(false), ms);
    all.add(waiting);
  });
}

/** Lets every other pending callback of the event loop run. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** For long work: yields to other work whenever `ms` have passed since the last yield. */
export function createTurns(ms: number): () => Promise<void> | undefined {
  let began = performance.now();
  return () => {
    if (performance.now() - began < ms) return undefined;
    return yieldToEventLoop().then(() => void (began = performance.now()));
  };
}

export interface Loop {
  /** Ends the loop and waits for the running turn. */
  close(): Promise<void>;
}

/**
 * Runs `turn` every `everyMs`, never twice at once, until closed. A turn that throws does not end the loop; only the
 * first of several failures in a row is reported.
 */
export function startLoop(
  everyMs: number,
  turn: (signal: AbortSignal) => Promise<void>,
  onError: (error: unknown) => void,
): Loop {
  const stop = new AbortController();
  let failing = false;
  const done = (async () => {
    while (!stop.signal.aborted) {
      await sleep(everyMs, stop.signal);
      if (stop.signal.aborted) return;
      try {
        await turn(stop.signal);
        failing = false;
      } catch (error) {
        if (!failing) onError(error);
        failing = true;
      }
    }
  })();
  return {
    async close() {
      stop.abort();
      await done;
    },
  };
}

/**
 * Turns: callers that come soon after one another wait for the same moment, so that what each of them writes then shares a
 * commit. The more callers a turn has, the longer the next one may gather. Not a queue: what they do is their own affair.
 */
import type { Clock } from './clock.js';

export interface Turns {
  /** Resolves when the running turn ends, or at once when the signal has aborted or aborts. */
  next(signal?: AbortSignal): Promise<void>;
}

interface TurnsOptions {
  readonly clock: Pick<Clock, 'monotonic'>;
  /** How long a turn gathers, in milliseconds, and how long under load. */
  readonly everyMs: number;
  readonly busyMs?: number;
  /** Callers of one turn for which the next gathers `everyMs` longer. */
  readonly callersPerStep?: number;
}

export function createTurns({ clock, everyMs, busyMs = everyMs, callersPerStep = 1 }: TurnsOptions): Turns {
  let turn: Promise<void> | undefined;
  let callers = 0;
  let gatherMs = everyMs;
  let endedAt = Number.NEGATIVE_INFINITY;

  const begin = (): Promise<void> => {
    if (clock.monotonic() - endedAt > busyMs) gatherMs = everyMs;
    return new Promise((resolve) => {
      setTimeout(() => {
        turn = undefined;
        gatherMs = Math.min(busyMs, everyMs * Math.max(1, Math.ceil(callers / callersPerStep)));
        callers = 0;
        endedAt = clock.monotonic();
        resolve();
      }, gatherMs);
    });
  };

  return {
    async next(signal) {
      callers += 1;
      turn ??= begin();
      if (signal === undefined) return turn;
      if (signal.aborted) return;
      const running = turn;
      let stop: () => void = () => undefined;
      const aborted = new Promise<void>((resolve) => {
        stop = resolve;
        signal.addEventListener('abort', stop, { once: true });
      });
      await Promise.race([running, aborted]);
      signal.removeEventListener('abort', stop);
    },
  };
}

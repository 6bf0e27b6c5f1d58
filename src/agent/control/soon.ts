/**
 * Something that is to be done at once, but only so often: what is asked for too soon is done once, as soon as it may be. Not the
 * regular intervals, which are in `session.ts`.
 */
import type { Clock } from '../../kernel/clock.js';
import { createTokenBucket } from '../../kernel/token-bucket.js';

export interface Soon {
  /** Asks for it. What could not be done stays asked for. */
  ask(): void;
  /** Does what could not be done when it was asked for. */
  retry(): void;
  close(): void;
}

/**
 * @param rate how often it may be done, and how often in a row
 * @param act does it; returns false if it cannot be done now
 */
export function createSoon(
  rate: { readonly perSecond: number; readonly burst: number },
  clock: Clock,
  act: () => boolean,
): Soon {
  const bucket = createTokenBucket(rate.perSecond, rate.burst, clock.monotonic());
  let wanted = false;
  let closed = false;
  let timer: NodeJS.Timeout | undefined;

  const run = (): void => {
    if (!wanted || closed || timer !== undefined) return;
    const waitMs = bucket.wait(clock.monotonic());
    if (waitMs > 0) {
      timer = setTimeout(() => {
        timer = undefined;
        run();
      }, waitMs);
    } else if (act()) {
      wanted = false;
      bucket.take(clock.monotonic());
    }
  };

  return {
    ask() {
      wanted = true;
      run();
    },
    retry: run,
    close() {
      closed = true;
      clearTimeout(timer);
    },
  };
}

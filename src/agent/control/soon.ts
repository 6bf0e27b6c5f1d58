/**
 * Rate-limits an action that should happen at once: requests that come too soon are merged into one, done as soon as
 * allowed. Regular intervals are in `session.ts`.
 */
import type { Clock } from '../../kernel/clock.js';
import { createTokenBucket } from '../../kernel/token-bucket.js';

export interface Soon {
  /** Requests the action. A request that could not be carried out stays pending. */
  ask(): void;
  /** Carries out a pending request. */
  retry(): void;
  close(): void;
}

/**
 * @param rate how often it may be done, and how often in a row
 * @param act does it; returns false if that is impossible now
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

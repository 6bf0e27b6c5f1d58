/**
 * A bounded waiting line: first come, first served, each caller with its own time limit. `delay` and `take` decide when
 * the next caller may pass.
 */
import { waitIn, type Waiting } from '../../../kernel/background.js';

interface LineOptions {
  /** 0: the next may pass now. Otherwise the milliseconds until the next check; Infinity: check after `poke`. */
  delay(): number;
  /** Called for each caller that passes, before the next is checked. */
  take(): void;
  readonly maxWaiting: number;
}

export type Line = ReturnType<typeof createLine>;

export function createLine(options: LineOptions) {
  const waiters = new Set<Waiting>();
  let timer: NodeJS.Timeout | undefined;
  let closed = false;

  const poke = (): void => {
    clearTimeout(timer);
    for (const waiter of waiters) {
      const delay = options.delay();
      if (delay > 0) {
        if (Number.isFinite(delay)) timer = setTimeout(poke, Math.max(1, Math.ceil(delay)));
        return;
      }
      options.take();
      waiter.answer(true);
    }
  };

  return {
    /** True if the caller's turn came within `waitMs`; false at once if the line is full or closed. */
    async enter(waitMs: number): Promise<boolean> {
      if (closed) return false;
      if (waiters.size === 0 && options.delay() === 0) {
        options.take();
        return true;
      }
      if (waiters.size >= options.maxWaiting || waitMs <= 0) return false;
      const passed = waitIn(waiters, {}, waitMs);
      poke();
      return passed;
    },
    /** Checks whether the next may pass. */
    poke,
    /** Turns away everyone who waits. */
    close(): void {
      closed = true;
      clearTimeout(timer);
      for (const waiter of waiters) waiter.answer(false);
    },
    get waiting(): number {
      return waiters.size;
    },
  };
}

/**
 * Sleeps (`src/kernel/background.ts`) that last one turn of the event loop, for tests of loops that wait for seconds or
 * minutes. Timers that are not sleeps stay as they are.
 */
import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers/promises';

export interface ShortSleeps {
  /** How long each sleep since then would have lasted, in milliseconds. */
  readonly slept: number[];
  restore(): void;
}

export function shortSleeps(): ShortSleeps {
  const original = timers.setTimeout;
  const slept: number[] = [];
  const short: typeof timers.setTimeout = async (ms = 0, value, options) => {
    slept.push(ms);
    await timers.setImmediate(undefined, options);
    return value as never;
  };
  timers.setTimeout = short;
  syncBuiltinESMExports();
  return {
    slept,
    restore() {
      timers.setTimeout = original;
      syncBuiltinESMExports();
    },
  };
}

/** Gives the event loop turns while the condition holds, also under fake timers. @throws Error after 20 s */
export async function turnsWhile(condition: () => boolean): Promise<void> {
  for (const until = performance.now() + 20_000; condition();) {
    if (performance.now() > until) throw new Error('nothing has changed in 20 s');
    await timers.setImmediate();
  }
}

/** Closes what was opened, newest first. A part that fails or hangs does not keep the others from closing. */
import { timedOut, withDeadline } from './background.js';
import { errorText } from './errors.js';
import type { Logger } from './logger.js';

/** How long one part of the process may take to close. */
export const shutdownMs = 10_000;
/** How long all parts together may take; after that, each remaining part gets only a moment. */
const allMs = 3 * shutdownMs;
const momentMs = 500;

export interface Closers {
  /** `name` is for the log, in case `close` fails or hangs. */
  add(name: string, close: () => unknown): void;
  /** Never rejects; failures are logged. */
  closeAll(): Promise<void>;
}

export function createClosers(logger: Logger): Closers {
  const closers: { readonly name: string; readonly close: () => unknown }[] = [];
  return {
    add(name, close) {
      closers.push({ name, close });
    },
    async closeAll() {
      const until = performance.now() + allMs;
      for (const { name, close } of closers.splice(0).reverse()) {
        try {
          const left = Math.min(shutdownMs, until - performance.now());
          const closed = await withDeadline(Promise.resolve(close()), Math.max(momentMs, left));
          if (closed === timedOut) logger.error({ part: name }, 'a part did not close in time');
        } catch (error) {
          logger.error({ part: name, error: errorText(error) }, 'a part failed to close');
        }
      }
    },
  };
}

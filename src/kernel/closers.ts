/** Closes what was opened, newest first. A part that fails or hangs does not keep the others from closing. */
import { timedOut, withDeadline } from './background.js';
import { errorText } from './errors.js';
import type { Logger } from './logger.js';

/** How long one part of the process may take to close. */
export const shutdownMs = 10_000;
/** How long all parts together may take; after that, each remaining part gets only a moment. */
const allMs = 3 * shutdownMs;
const momentMs = 500;

interface Part {
  close(): unknown;
}

export interface Closers {
  /** `name` is for the log, in case `close` fails or hangs. @returns the part */
  add<P extends Part>(name: string, part: P): P;
  /** Never rejects; failures are logged. */
  closeAll(): Promise<void>;
}

export function createClosers(logger: Logger): Closers {
  const parts: { readonly name: string; readonly part: Part }[] = [];
  return {
    add(name, part) {
      parts.push({ name, part });
      return part;
    },
    async closeAll() {
      const until = performance.now() + allMs;
      for (const { name, part } of parts.splice(0).reverse()) {
        try {
          const left = Math.min(shutdownMs, until - performance.now());
          const closed = await withDeadline(Promise.resolve(part.close()), Math.max(momentMs, left));
          if (closed === timedOut) logger.error({ part: name }, 'a part did not close in time');
        } catch (error) {
          logger.error({ part: name, error: errorText(error) }, 'a part failed to close');
        }
      }
    },
  };
}

/** Closes what was opened, the newest first; a failure does not keep the rest from closing. */
import { errorText } from './errors.js';
import type { Logger } from './logger.js';

/** How long one part of the process may take to close. */
export const shutdownMs = 10_000;

export interface Closers {
  /** `name` is for the log, in case `close` fails. */
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
      for (const { name, close } of closers.splice(0).reverse()) {
        try {
          await close();
        } catch (error) {
          logger.error({ part: name, error: errorText(error) }, 'a part failed to close');
        }
      }
    },
  };
}

/** What was opened, to be closed in reverse order whatever fails on the way. Knows nothing of what it closes. */
import { errorText } from './errors.js';
import type { Logger } from './logger.js';

/** How long one part of a process may take to close in order. */
export const shutdownMs = 10_000;

export interface Closers {
  /** `name` is for the log, should `close` fail. */
  add(name: string, close: () => unknown): void;
  /** Closes the newest first. Never rejects; what fails is logged. */
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
          logger.error({ part: name, error: errorText(error) }, 'a part did not close in order');
        }
      }
    },
  };
}

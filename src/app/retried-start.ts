/**
 * Repeats a start while an external store goes away in the middle of it. Each attempt closes everything that it has
 * opened before the next one begins. A store that is away from the beginning is waited for where it is opened.
 */
import { sleep } from '../kernel/background.js';
import { createClosers } from '../kernel/closers.js';
import type { Closers } from '../kernel/closers.js';
import { errorText, ServiceError } from '../kernel/errors.js';
import type { Logger } from '../kernel/logger.js';
import { backoff, storeRetry } from '../kernel/retry.js';

/** @throws whatever stops the start for good: anything but an external store that is `unavailable` */
export async function retriedStart<T>(
  start: (closers: Closers) => Promise<T>,
  { externalStores, logger }: { readonly externalStores: boolean; readonly logger: Logger },
): Promise<T> {
  for (let attempt = 0; ; attempt += 1) {
    const closers = createClosers(logger);
    try {
      return await start(closers);
    } catch (error) {
      await closers.closeAll();
      if (!externalStores || !(error instanceof ServiceError) || error.code !== 'unavailable') throw error;
      logger.warn({ error: errorText(error) }, 'a store went away during the start; starting again');
      await sleep(backoff(storeRetry, attempt));
    }
  }
}

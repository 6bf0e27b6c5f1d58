/** How work on many documents is cut, and how a change that others overtook is tried again. */
import { sleep } from '../../kernel/background.js';
import { ServiceError } from '../../kernel/errors.js';
import { backoff } from '../../kernel/retry.js';
import { tuning } from './tuning.js';

const { batchDocuments, attempts, overtakenRetry } = tuning;

/** Slices, in order, each for one command. */
export function* batches<T>(all: readonly T[]): Generator<readonly T[]> {
  for (let start = 0; start < all.length; start += batchDocuments) yield all.slice(start, start + batchDocuments);
}

/**
 * Repeats a step until it tells an outcome. It waits in between: a read of what a majority has may be a little behind
 * the document that a write meets.
 * @throws ServiceError `unavailable` when others overtake it all the time
 */
export async function untilSettled<T extends {}>(what: string, step: () => Promise<T | undefined>): Promise<T> {
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const outcome = await step();
    if (outcome !== undefined) return outcome;
    await sleep(backoff(overtakenRetry, attempt));
  }
  throw new ServiceError('unavailable', `The read store cannot write ${what} now: others write it all the time.`);
}

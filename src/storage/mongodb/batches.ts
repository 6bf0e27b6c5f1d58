/** Splits work on many documents into batches, and retries a change that other instances overtook. */
import { sleep } from '../../kernel/background.js';
import { ServiceError } from '../../kernel/errors.js';
import { backoff } from '../../kernel/retry.js';
import { tuning } from './tuning.js';

const { batchDocuments, attempts, overtakenRetry } = tuning;

/** Slices in order, one per command. */
export function* batches<T>(all: readonly T[]): Generator<readonly T[]> {
  for (let start = 0; start < all.length; start += batchDocuments) yield all.slice(start, start + batchDocuments);
}

/** Filters by ids. A single id is compared directly, because FerretDB scans for `$in`. */
export function byIds(ids: readonly string[]): { readonly _id: string | { readonly $in: string[] } } {
  const [first] = ids;
  return { _id: first !== undefined && ids.length === 1 ? first : { $in: [...ids] } };
}

/**
 * Repeats a step until it returns true. Waits in between, because a majority read may be slightly behind the document
 * that a write meets.
 * @throws ServiceError `unavailable` when others keep overtaking it
 */
export async function untilSettled(step: () => Promise<boolean>): Promise<void> {
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    if (await step()) return;
    await sleep(backoff(overtakenRetry, attempt));
  }
  throw new ServiceError('unavailable', 'The read store cannot write these documents now: others keep changing them.');
}

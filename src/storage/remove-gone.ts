/**
 * Removes the stored documents of deleted resources that were written after the delete, or that it could not remove. Only
 * documents older than a day go, because an instance may not know a new resource yet. No projection writes them.
 */
import { timestamp, type Clock } from '../kernel/clock.js';
import type { Collection, Fields, StoredDocument } from './read-store.js';

const dayMs = 24 * 60 * 60_000;

/**
 * Walks the whole collection.
 * @param pageSize documents read at once
 * @throws ServiceError `unavailable`
 */
export async function removeGone<F extends Fields & { readonly at: string }>(
  collection: Pick<Collection<F>, 'list' | 'remove'>,
  pageSize: number,
  clock: Pick<Clock, 'now'>,
  isGone: (document: StoredDocument<F>) => boolean,
): Promise<void> {
  for (let after: string | undefined, more = true; more;) {
    const some = await collection.list(after, pageSize);
    const before = timestamp(clock.now() - dayMs);
    const gone = some.filter((document) => document.fields.at < before && isGone(document));
    if (gone.length > 0) await collection.remove(gone.map(({ id }) => id));
    after = some.at(-1)?.id;
    more = some.length === pageSize;
  }
}

/**
 * Removes documents whose time is over. The log drops its events at that age on some stores at once, on others some day;
 * the documents go by their own time, so that every store shows the same. Not the removal of tombstones (`tombstones.ts`).
 * Implements `docs/contract/domain.md#one-consistency-boundary-the-fleet`, "what expires never changes what is shown".
 */
import type { Loop } from '../../kernel/background.js';
import type { Clock } from '../../kernel/clock.js';
import type { Logger } from '../../kernel/logger.js';
import type { ReadModel } from '../read-model.js';
import type { OpenCollections } from '../read-models.js';
import { tuning } from '../tuning.js';
import { startRemovals } from './removals.js';

interface ExpiryDeps {
  readonly models: readonly ReadModel[];
  readonly collections: OpenCollections;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Removes what has expired by now. An instance that is behind may write such a document again; the next turn removes it.
 * @returns how many documents it has removed @throws ServiceError `unavailable`
 */
export async function removeExpired({ models, collections, clock }: Omit<ExpiryDeps, 'logger'>): Promise<number> {
  let removed = 0;
  for (const model of models) {
    const collection = collections.get(model.name);
    const range = model.expired?.(clock.now());
    if (collection === undefined || range === undefined) continue;
    for (;;) {
      const items = await collection.find({ ...range, direction: 'asc', limit: tuning.expiredDocuments });
      if (items.length > 0) await collection.remove(items.map(({ id }) => id));
      removed += items.length;
      if (items.length < tuning.expiredDocuments) break;
    }
  }
  return removed;
}

export function startExpiry({ logger, ...deps }: ExpiryDeps): Loop {
  return startRemovals(tuning.expiryEveryMs, 'expired documents', () => removeExpired(deps), logger);
}

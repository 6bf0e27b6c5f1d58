/**
 * Removes expired documents. Implements `docs/contract/domain.md#one-consistency-boundary-the-fleet`, "what expires never
 * changes what is shown".
 */
import { startLoop, type Loop } from '../../kernel/background.js';
import { logsWarning, type Logger } from '../../kernel/logger.js';
import type { ReadModel } from '../read-model.js';
import type { OpenCollections } from '../read-models.js';
import { tuning } from '../tuning.js';

/**
 * Removes documents periodically, and logs how many.
 * @param remove resolves to how many it removed; after a failure, the next turn tries again
 */
export function startRemovals(everyMs: number, remove: () => Promise<number>, logger: Logger): Loop {
  return startLoop(
    everyMs,
    async () => {
      const removed = await remove();
      if (removed > 0) logger.debug({ removed }, 'expired documents removed');
    },
    logsWarning(logger, 'expired documents could not be removed'),
  );
}

interface ExpiryDeps {
  readonly models: readonly ReadModel[];
  readonly collections: OpenCollections;
  /** The time that decides deletes (`src/instance/store-clocks.ts`). */
  deletionTime(): number | undefined;
}

/**
 * Removes expired documents by their own time, so that every store shows the same, however late it drops expired events. An
 * instance that lags may write such a document again; the next turn removes it.
 * @returns how many documents it has removed @throws ServiceError `unavailable`
 */
export async function removeExpired({ models, collections, deletionTime }: ExpiryDeps): Promise<number> {
  let removed = 0;
  const now = deletionTime();
  if (now === undefined) return 0;
  for (const model of models) {
    const collection = collections.get(model.name);
    const range = model.expired?.(now);
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

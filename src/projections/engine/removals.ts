/**
 * Removes what the read models no longer need: tombstones that every instance has passed, and documents whose time is over.
 * Implements `docs/architecture.md#read-models` and `docs/contract/domain.md#one-consistency-boundary-the-fleet`, "what
 * expires never changes what is shown".
 */
import { startLoop } from '../../kernel/background.js';
import type { Loop } from '../../kernel/background.js';
import type { Clock } from '../../kernel/clock.js';
import { errorText } from '../../kernel/errors.js';
import type { Logger } from '../../kernel/logger.js';
import type { Collection, ReadStore } from '../../storage/read-store.js';
import type { ReadModel } from '../read-model.js';
import type { OpenCollections } from '../read-models.js';
import { tuning } from '../tuning.js';

/**
 * Removes something now and then, and logs how many documents went.
 * @param everyMs the time between two turns
 * @param what names the documents in the log
 * @param remove makes one turn and resolves to how many it removed; after a failure, the next turn tries again
 */
export function startRemovals(everyMs: number, what: string, remove: () => Promise<number>, logger: Logger): Loop {
  return startLoop(
    everyMs,
    async () => {
      const removed = await remove();
      if (removed > 0) logger.debug({ removed }, `${what} removed`);
    },
    (error) => logger.warn({ error: errorText(error) }, `${what} could not be removed`),
  );
}

interface TombstoneDeps {
  readonly readStore: Pick<ReadStore, 'leases'>;
  /** Position of the stored checkpoint, where a restart begins; undefined when there is none. */
  checkpoint(): Promise<number | undefined>;
  collections(): Iterable<Collection>;
}

/** Kind of the instance leases; their data has `position`, how far the instance has projected. */
const instances = 'instances';

/** The position that every live instance and every restart has passed; undefined while it is not known. */
async function passedByAll(deps: TombstoneDeps): Promise<number | undefined> {
  const leases = await deps.readStore.leases.list(instances);
  const positions = leases.map(({ data }) =>
    data !== null && typeof data === 'object' && 'position' in data ? data['position'] : undefined,
  );
  const checkpoint = await deps.checkpoint();
  if (checkpoint === undefined || positions.length === 0) return undefined;
  const numbers = positions.filter((position) => typeof position === 'number');
  return numbers.length < positions.length ? undefined : Math.min(checkpoint, ...numbers);
}

/**
 * Tombstones are removed once every live instance has passed them, and a restart would begin behind them.
 * @returns one turn of the purge: it removes what had been passed at the turn before, because an
 * instance that has started since, and has no lease yet, has read a checkpoint at or above it.
 */
export function createPurge(deps: TombstoneDeps): () => Promise<number> {
  let passed: number | undefined;
  return async () => {
    const upTo = passed;
    passed = await passedByAll(deps);
    let removed = 0;
    if (upTo === undefined) return 0;
    for (const collection of deps.collections()) removed += await collection.purgeTombstones(upTo);
    return removed;
  };
}

interface ExpiryDeps {
  readonly models: readonly ReadModel[];
  readonly collections: OpenCollections;
  readonly clock: Clock;
}

/**
 * Removes the documents that have expired by now. Stores drop expired events at different times; documents go by their
 * own time, so that every store shows the same. An instance that is behind may write such a document again; the next turn removes it.
 * @returns how many documents it has removed @throws ServiceError `unavailable`
 */
export async function removeExpired({ models, collections, clock }: ExpiryDeps): Promise<number> {
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

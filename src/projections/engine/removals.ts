/**
 * Removes tombstones that every instance has passed, and expired documents. Implements `docs/architecture.md#read-models` and
 * `docs/contract/domain.md#one-consistency-boundary-the-fleet`, "what expires never changes what is shown".
 */
import { startLoop, type Loop } from '../../kernel/background.js';
import { logsWarning, type Logger } from '../../kernel/logger.js';
import type { Collection, ReadStore } from '../../storage/read-store.js';
import type { ReadModel } from '../read-model.js';
import type { OpenCollections } from '../read-models.js';
import { tuning } from '../tuning.js';

/**
 * Removes documents periodically, and logs how many.
 * @param what name of the documents in the log
 * @param remove resolves to how many it removed; after a failure, the next turn tries again
 */
export function startRemovals(everyMs: number, what: string, remove: () => Promise<number>, logger: Logger): Loop {
  return startLoop(
    everyMs,
    async () => {
      const removed = await remove();
      if (removed > 0) logger.debug({ removed }, `${what} removed`);
    },
    logsWarning(logger, `${what} could not be removed`),
  );
}

interface TombstoneDeps {
  readonly readStore: Pick<ReadStore, 'leases'>;
  /** Position of the stored checkpoint, where a restart begins; undefined when there is none. */
  checkpoint(): Promise<number | undefined>;
  collections(): Iterable<Collection>;
  /** The time that decides deletes (`src/instance/store-clocks.ts`). */
  deletionTime(): number | undefined;
}

/** Kind of the instance leases; their data has `position`, up to which the instance has projected. */
const instances = 'instances';

/** The position that every live instance and every restart has passed; undefined while unknown. */
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
 * Removes tombstones a day after every live instance and the checkpoint have passed them. Instances that start later begin
 * after them, and by then late writes of ended instances have arrived.
 * @returns one turn of the purge
 */
export function createPurge(deps: TombstoneDeps): () => Promise<number> {
  /** The positions that all had passed, and when; the oldest first, at most one an hour. */
  const passed: { readonly position: number; readonly at: number }[] = [];
  return async () => {
    const now = deps.deletionTime();
    const position = await passedByAll(deps);
    if (now === undefined || position === undefined) return 0;
    if (now - (passed.at(-1)?.at ?? Number.NEGATIVE_INFINITY) >= tuning.tombstoneMarkEveryMs) {
      passed.push({ position, at: now });
    }
    const old = passed.filter(({ at }) => now - at >= tuning.tombstoneAgeMs);
    passed.splice(0, old.length);
    let removed = 0;
    const upTo = old.at(-1)?.position;
    if (upTo === undefined) return 0;
    for (const collection of deps.collections()) removed += await collection.purgeTombstones(upTo);
    return removed;
  };
}

interface ExpiryDeps {
  readonly models: readonly ReadModel[];
  readonly collections: OpenCollections;
  /** See `TombstoneDeps`. */
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

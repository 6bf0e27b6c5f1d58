/**
 * Removes tombstones that are no longer needed: those that every live instance has passed, and that a restart would
 * begin after. Implements `docs/architecture.md#read-models`.
 */
import type { Loop } from '../../kernel/background.js';
import type { Logger } from '../../kernel/logger.js';
import type { Collection, ReadStore } from '../../storage/read-store.js';
import { tuning } from '../tuning.js';
import { startRemovals } from './removals.js';

interface TombstoneDeps {
  readonly readStore: ReadStore;
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
 * @returns a function that makes one turn of the purge. A turn removes what had been passed at the turn before: an
 * instance that has started since, and has no lease yet, has read a checkpoint at or above it.
 * @internal exported for tests
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

export function startTombstonePurge({ logger, ...deps }: TombstoneDeps & { readonly logger: Logger }): Loop {
  return startRemovals(tuning.tombstonePurgeEveryMs, 'tombstones', createPurge(deps), logger);
}

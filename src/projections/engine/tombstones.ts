/**
 * Removes tombstones that nobody needs any more: those that every live instance has passed, and every restart would
 * begin behind. Implements `docs/architecture.md` ("purged once every live instance has passed it").
 */
import { startLoop } from '../../kernel/background.js';
import type { Loop } from '../../kernel/background.js';
import { errorText } from '../../kernel/errors.js';
import type { Logger } from '../../kernel/logger.js';
import type { Collection, ReadStore } from '../../storage/read-store.js';
import { tuning } from '../tuning.js';

export interface TombstoneDeps {
  readonly readStore: ReadStore;
  readonly logger: Logger;
  /** Position of the stored checkpoint, undefined when there is none: a restart begins there. */
  checkpoint(): Promise<number | undefined>;
  collections(): Iterable<Collection>;
}

/** Kind of the leases by which instances tell that they live; their data has `position`, how far they have projected. */
const instances = 'instances';

/** Up to where every live instance and every restart has passed; undefined while that can't be known. */
export async function passedByAll(deps: Pick<TombstoneDeps, 'readStore' | 'checkpoint'>): Promise<number | undefined> {
  const leases = await deps.readStore.leases.list(instances);
  const positions = leases.map(({ data }) =>
    data !== null && typeof data === 'object' && 'position' in data ? data['position'] : undefined,
  );
  const checkpoint = await deps.checkpoint();
  if (checkpoint === undefined || positions.length === 0) return undefined;
  const known = positions.filter((position) => typeof position === 'number');
  return known.length < positions.length ? undefined : Math.min(checkpoint, ...known);
}

/**
 * One turn of the purge after the other. Each removes what had been passed at the turn before: an instance that has
 * just begun, and has no lease yet, read its checkpoint since.
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

export function startTombstonePurge(deps: TombstoneDeps): Loop {
  const purge = createPurge(deps);
  return startLoop(
    tuning.tombstonePurgeEveryMs,
    async () => {
      const removed = await purge();
      if (removed > 0) deps.logger.debug({ removed }, 'tombstones removed');
    },
    (error) => deps.logger.warn({ error: errorText(error) }, 'tombstones could not be removed'),
  );
}

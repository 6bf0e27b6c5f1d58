/**
 * The agents' hellos that any instance has seen, in the read store: a hello recorded at one instance cannot be replayed
 * at another. An instance that cannot ask the store relies on its own memory, which the listener keeps. Implements
 * `docs/reality.md#limits`.
 */
import { createHash } from 'node:crypto';
import { startLoop } from '../kernel/background.js';
import { timestamp } from '../kernel/clock.js';
import { errorText } from '../kernel/errors.js';
import { logsWarning, type Logger } from '../kernel/logger.js';
import type { CollectionSpec, ReadStore } from '../storage/read-store.js';

/** Removed per step. */
const purgedAtOnce = 1_000;
/** The only group, with all hellos. */
const kind = 'hello';

const spec: CollectionSpec = { name: 'reality_hellos', version: 1, index: { group: 'kind', order: 'until' } };

export interface SharedHellos {
  /**
   * Notes a hello by its random. Never rejects.
   * @param until milliseconds since the Unix epoch: until then it must be remembered
   * @returns whether another instance has noted it before; false when that cannot be known
   */
  seen(random: Buffer, until: number): Promise<boolean>;
  close(): Promise<void>;
}

export interface SharedHellosDeps {
  readonly readStore: Pick<ReadStore, 'collection'>;
  readonly logger: Logger;
  readonly away: () => boolean;
  /** The time to judge ages by before deleting (`store-clocks.ts`). */
  deletionTime(): number | undefined;
  /** How often expired ones are removed, in milliseconds. */
  readonly purgeEveryMs?: number;
}

/** @throws ServiceError `unavailable` */
export async function openSharedHellos({
  readStore,
  logger,
  away,
  deletionTime,
  purgeEveryMs = 60_000,
}: SharedHellosDeps): Promise<SharedHellos> {
  const hellos = await readStore.collection<{ readonly kind: string; readonly until: string }>(spec);
  let failing = false;

  async function purge(): Promise<void> {
    const time = deletionTime();
    if (time === undefined) return;
    const expired = { groups: [kind], below: timestamp(time), direction: 'asc', limit: purgedAtOnce } as const;
    for (let removed = purgedAtOnce; removed === purgedAtOnce;) {
      const old = await hellos.find(expired);
      removed = old.length;
      if (removed > 0) await hellos.remove(old.map(({ id }) => id));
    }
  }
  const loop = startLoop(purgeEveryMs, purge, logsWarning(logger, 'hellos that have expired could not be removed'));

  return {
    async seen(random, until) {
      if (away()) return false;
      try {
        const id = createHash('sha256').update(random).digest('hex');
        const inserted = await hellos.insert([{ id, fields: { kind, until: timestamp(until) } }]);
        failing = false;
        return inserted.length === 0;
      } catch (error) {
        // Logged once per outage.
        if (!failing)
          logger.warn({ error: errorText(error) }, 'the hellos that other instances have seen cannot be read');
        failing = true;
        return false;
      }
    },
    close: () => loop.close(),
  };
}

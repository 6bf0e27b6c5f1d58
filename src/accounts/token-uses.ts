/**
 * When and from where each API token was last used, to the minute: in the read store, written behind. Using a token
 * creates no event: no revert or audit needs it, and it would fill most of the log. Implements
 * `docs/contract/automation.md#api-tokens`.
 */
import { startLoop } from '../kernel/background.js';
import { isOfFuture, timestamp, type Clock } from '../kernel/clock.js';
import { ServiceError } from '../kernel/errors.js';
import { createKeyedBatch } from '../kernel/keyed-batch.js';
import { logsWarning, type Logger } from '../kernel/logger.js';
import { createLru } from '../kernel/lru.js';
import type { ReadStore } from '../storage/read-store.js';
import { removeGone } from '../storage/remove-gone.js';
import { tuning } from './tuning.js';

export type TokenUse = {
  /** RFC 3339, to the minute. */
  readonly at: string;
  /** The IP address. */
  readonly from: string;
};

export interface TokenUses {
  /** The token was used now. Costs a lookup in memory, and a write once a minute. */
  note(tokenId: string, address: string): void;
  /** The last uses on any instance; only those on this one while the read store is away. */
  of(tokenIds: readonly string[]): Promise<ReadonlyMap<string, TokenUse>>;
  close(): Promise<void>;
}

export interface TokenUsesDeps {
  readonly readStore: Pick<ReadStore, 'collection'>;
  readonly clock: Pick<Clock, 'now'>;
  readonly logger: Logger;
  readonly away: () => boolean;
  /** The token was deleted. */
  isGone(tokenId: string): boolean;
  /** How often the uses of deleted tokens are removed, in milliseconds. */
  readonly removeEveryMs?: number;
}

const minuteMs = 60_000;

/** @throws ServiceError `unavailable` */
export async function openTokenUses(deps: TokenUsesDeps): Promise<TokenUses> {
  const { readStore, clock, logger, away } = deps;
  const stored = await readStore.collection<TokenUse>({ name: 'api_token_uses', version: 1 });
  const own = createLru<TokenUse>(tuning.uses.maxEntries);
  const batch = createKeyedBatch<TokenUse>({
    ...tuning.uses,
    async write(uses) {
      // Another instance may have written a later use.
      const known = await lastOf(uses.map(([id]) => id));
      const newer = uses.filter(([id, use]) => isNewer(use, known.get(id)));
      if (newer.length > 0) await stored.set(newer.map(([id, fields]) => ({ id, fields })));
    },
    onError: logsWarning(logger, 'last uses of API tokens wait for the read store'),
  });

  /** A use of the future was noted while a clock was ahead. */
  const isNewer = ({ at }: TokenUse, than: TokenUse | undefined): boolean =>
    than === undefined || at > than.at || isOfFuture(Date.parse(than.at), clock.now());

  async function lastOf(ids: readonly string[]): Promise<Map<string, TokenUse>> {
    const found = await stored.getMany(ids);
    return new Map(found.map(({ id, fields }) => [id, fields]));
  }

  /** None while the read store is away, even in the seconds before that is known. */
  async function storedOf(ids: readonly string[]): Promise<Map<string, TokenUse>> {
    try {
      return away() ? new Map() : await lastOf(ids);
    } catch (error) {
      if (error instanceof ServiceError && error.code === 'unavailable') return new Map();
      throw error;
    }
  }

  const loop = startLoop(
    deps.removeEveryMs ?? tuning.removeUsesEveryMs,
    () => removeGone(stored, tuning.uses.batchEntries, clock, ({ id }) => deps.isGone(id)),
    logsWarning(logger, 'last uses of deleted API tokens could not be removed'),
  );

  return {
    note(tokenId, address) {
      const at = timestamp(Math.floor(clock.now() / minuteMs) * minuteMs);
      if (own.get(tokenId)?.at === at) return;
      const use = { at, from: address };
      own.set(tokenId, use);
      batch.put(tokenId, use);
    },
    async of(tokenIds) {
      const last = await storedOf(tokenIds);
      for (const id of tokenIds) {
        const use = own.get(id);
        if (use !== undefined && isNewer(use, last.get(id))) last.set(id, use);
      }
      return last;
    },
    async close() {
      await loop.close();
      await batch.close();
    },
  };
}

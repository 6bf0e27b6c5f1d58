/**
 * Decides which instance sends a queued command to its agent: the first to insert a claim into the read store. So each
 * command is sent at most once, over any number of instances and sessions. The queue itself is in the log.
 * Implements `docs/contract/agent-protocol.md#heartbeats-commands-metrics`.
 */
import { startLoop, timedOut, withDeadline } from '../kernel/background.js';
import type { Clock } from '../kernel/clock.js';
import { timestamp } from '../kernel/clock.js';
import { errorText } from '../kernel/errors.js';
import { limits } from '../kernel/limits.js';
import type { Logger } from '../kernel/logger.js';
import type { CollectionSpec, ReadStore } from '../storage/read-store.js';

/** How long the answer to a heartbeat waits for claims; later claims go with the next one. */
const claimWaitMs = 500;
/** Expired claims read at once. */
const purgedAtOnce = 1000;

export const commandClaims: CollectionSpec = {
  name: 'command_claims',
  version: 1,
  index: { group: 'kind', order: 'expires_at' },
};

interface Queued<Name> {
  readonly id: string;
  readonly command: Name;
  /** RFC 3339. */
  readonly expires_at: string;
}

export interface CommandClaims {
  /**
   * Claims the commands of a node that are neither expired nor claimed, oldest first, at most 16. A heartbeat waits for
   * the answer, so it comes soon: a claim that the store has not confirmed by then is returned by a later call. Returns
   * only confirmed claims; never rejects.
   */
  claim<Name>(nodeId: string, queued: readonly Queued<Name>[]): Promise<readonly Name[]>;
  close(): Promise<void>;
}

export interface CommandClaimsDeps {
  readonly readStore: ReadStore;
  readonly clock: Clock;
  readonly logger: Logger;
  /** All commands that are queued now, by node. */
  queued(): Iterable<readonly [nodeId: string, queued: readonly Queued<unknown>[]]>;
}

/** The document that says that this read store has all claims: without it, the store was emptied. */
const marker = 'all_claims';
/** The one group of all claims. */
const kind = 'claim';
const never = '9999-12-31T00:00:00.000Z';

/**
 * Commands that were queued before the read store was emptied count as sent: nobody knows any more which of them were.
 * @throws ServiceError `unavailable`
 */
export async function openCommandClaims(deps: CommandClaimsDeps): Promise<CommandClaims> {
  const { readStore, clock, logger } = deps;
  type Claim = { readonly kind: typeof kind; readonly node_id: string; readonly expires_at: string };
  const claims = await readStore.collection<Claim>(commandClaims);
  if ((await claims.get(marker)) === undefined) {
    for (const [node_id, queued] of deps.queued()) {
      for (const { id, expires_at } of queued) await claims.insert(id, { kind, node_id, expires_at });
    }
    await claims.insert(marker, { kind, node_id: '', expires_at: never });
  }
  /** Expiry by id of commands with a claim, of whichever instance: the store is not asked again at every heartbeat. */
  const claimedIds = new Map<string, string>();
  /** Nodes with a claim under way: the next call does not wait for it again. */
  const underWay = new Set<string>();
  /** Claims of this instance, by node, that were confirmed after the call had returned. */
  const late = new Map<string, Queued<unknown>[]>();
  let failing = false;

  async function claimOne(nodeId: string, { id, expires_at }: Queued<unknown>): Promise<boolean> {
    const inserted = await claims.insert(id, { kind, node_id: nodeId, expires_at });
    claimedIds.set(id, expires_at);
    return inserted;
  }

  /** The commands that this instance has claimed; when the store fails on the way, those before the failure. */
  async function claimAll<Name>(nodeId: string, open: readonly Queued<Name>[]): Promise<Queued<Name>[]> {
    const claimed: Queued<Name>[] = [];
    underWay.add(nodeId);
    try {
      for (const queued of open) if (await claimOne(nodeId, queued)) claimed.push(queued);
      if (claimed.length > 0) failing = false;
    } catch (error) {
      // Logged once per outage: every node with a queue comes again with each heartbeat.
      if (!failing) logger.warn({ node_id: nodeId, error: errorText(error) }, 'commands to agents cannot be claimed');
      failing = true;
    } finally {
      underWay.delete(nodeId);
    }
    return claimed;
  }

  /** The late claims of a node, except commands that have expired or left the queue. */
  function takeLate<Name>(nodeId: string, queued: readonly Queued<Name>[], now: string): Queued<Name>[] {
    const ids = new Set(late.get(nodeId)?.map(({ id }) => id));
    late.delete(nodeId);
    return queued.filter(({ id, expires_at }) => ids.has(id) && expires_at > now);
  }

  /** Forgets claims whose command has expired. */
  async function purge(): Promise<void> {
    const now = timestamp(clock.now());
    for (const [id, expires] of claimedIds) if (expires <= now) claimedIds.delete(id);
    for (const [nodeId, queued] of late) if (queued.every(({ expires_at }) => expires_at <= now)) late.delete(nodeId);
    // Just above every claim that expired at that time.
    const below = `${timestamp(clock.now() - limits.agent.commandExpiryMs)}0`;
    const old = await claims.find({ groups: [kind], below, direction: 'asc', limit: purgedAtOnce });
    if (old.length > 0) await claims.remove(old.map(({ id }) => id));
  }
  const loop = startLoop(limits.agent.commandExpiryMs, purge, (error) => {
    logger.warn({ error: errorText(error) }, 'expired claims of commands could not be removed');
  });

  return {
    async claim<Name>(nodeId: string, queued: readonly Queued<Name>[]) {
      const now = timestamp(clock.now());
      const earlier = takeLate(nodeId, queued, now);
      const open = queued.filter(({ id, expires_at }) => expires_at > now && !claimedIds.has(id));
      const room = limits.agent.commandsPerHeartbeat - earlier.length;
      if (open.length === 0 || room <= 0 || underWay.has(nodeId)) return earlier.map(({ command }) => command);
      const claiming = claimAll(nodeId, open.slice(0, room));
      const claimed = await withDeadline(claiming, claimWaitMs);
      if (claimed === timedOut) {
        void claiming.then((confirmed) => {
          if (confirmed.length > 0) late.set(nodeId, [...(late.get(nodeId) ?? []), ...confirmed]);
        });
        return earlier.map(({ command }) => command);
      }
      return [...earlier, ...claimed].map(({ command }) => command);
    },
    close: () => loop.close(),
  };
}

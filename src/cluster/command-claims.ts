/**
 * Who sends a queued command to its agent: whoever first puts its claim into the read store, so each command is sent at
 * most once, whatever number of instances and sessions there are. Not the queue: that is the log.
 * Implements `docs/contract/agent-protocol.md`, Heartbeats, commands, metrics.
 */
import { startLoop, timedOut, withDeadline } from '../kernel/background.js';
import type { Clock } from '../kernel/clock.js';
import { timestamp } from '../kernel/clock.js';
import { errorText } from '../kernel/errors.js';
import { limits } from '../kernel/limits.js';
import type { Logger } from '../kernel/logger.js';
import type { CollectionSpec, ReadStore } from '../storage/read-store.js';
import { tuning } from './tuning.js';

export const commandClaims: CollectionSpec = {
  name: 'command_claims',
  version: 1,
  indexes: [{ fields: ['expires_at'] }],
};

interface Queued<Name> {
  readonly id: string;
  readonly command: Name;
  /** RFC 3339. */
  readonly expires_at: string;
}

export interface CommandClaims {
  /**
   * Claims what of a node's queue is neither expired nor claimed, oldest first, at most 16. A claim that the store could
   * not confirm is not sent: at most once, never twice. Answers soon, for a heartbeat waits for it: what the store has not
   * confirmed by then comes with a later call. Never rejects.
   */
  claim<Name>(nodeId: string, queued: readonly Queued<Name>[]): Promise<readonly Name[]>;
  close(): Promise<void>;
}

export interface CommandClaimsDeps {
  readonly readStore: ReadStore;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** @throws ServiceError `unavailable` */
export async function openCommandClaims({ readStore, clock, logger }: CommandClaimsDeps): Promise<CommandClaims> {
  type Claim = { readonly node_id: string; readonly expires_at: string };
  const claims = await readStore.collection<Claim>(commandClaims);
  // Ids that this instance knows to be claimed, so that a queue is not asked for again with every heartbeat.
  const settled = new Map<string, string>();

  /** Nodes of which a claim is on its way: the next call does not wait for it again. */
  const underWay = new Set<string>();
  /** Claimed, but too late for the call that asked for it. */
  const late = new Map<string, Queued<unknown>[]>();
  let failing = false;

  async function claimOne(nodeId: string, { id, expires_at }: Queued<unknown>): Promise<boolean> {
    const mine = await claims.insert(id, { node_id: nodeId, expires_at });
    settled.set(id, expires_at);
    return mine;
  }

  /** What it got, also when the store fails on the way. */
  async function claimAll<Name>(nodeId: string, open: readonly Queued<Name>[]): Promise<Queued<Name>[]> {
    const mine: Queued<Name>[] = [];
    underWay.add(nodeId);
    try {
      for (const queued of open) if (await claimOne(nodeId, queued)) mine.push(queued);
      if (mine.length > 0) failing = false;
    } catch (error) {
      // Once per outage: every node that has a queue asks again with each heartbeat.
      if (!failing)
        logger.warn({ node_id: nodeId, error: errorText(error) }, 'commands to agents can not be claimed now');
      failing = true;
    } finally {
      underWay.delete(nodeId);
    }
    return mine;
  }

  /** What came too late for an earlier call; the queue says which of it still counts, and its names. */
  function takeLate<Name>(nodeId: string, queued: readonly Queued<Name>[], now: string): Queued<Name>[] {
    const ids = new Set(late.get(nodeId)?.map(({ id }) => id));
    late.delete(nodeId);
    return queued.filter(({ id, expires_at }) => ids.has(id) && expires_at > now);
  }

  /** A claim is of no use once its command has expired. */
  async function purge(): Promise<void> {
    const now = timestamp(clock.now());
    for (const [id, expires] of settled) if (expires <= now) settled.delete(id);
    for (const [nodeId, queued] of late) if (queued.every(({ expires_at }) => expires_at <= now)) late.delete(nodeId);
    const old = await claims.find({
      where: [{ field: 'expires_at', op: 'lte', value: timestamp(clock.now() - limits.agent.commandExpiryMs) }],
      limit: tuning.claimDocuments,
    });
    if (old.items.length > 0) await claims.remove(old.items.map(({ id }) => id));
  }
  const loop = startLoop(limits.agent.commandExpiryMs, purge, (error) => {
    logger.warn({ error: errorText(error) }, 'old claims of commands could not be removed');
  });

  return {
    async claim<Name>(nodeId: string, queued: readonly Queued<Name>[]) {
      const now = timestamp(clock.now());
      const before = takeLate(nodeId, queued, now);
      const open = queued.filter(({ id, expires_at }) => expires_at > now && !settled.has(id));
      const room = limits.agent.commandsPerHeartbeat - before.length;
      if (open.length === 0 || room <= 0 || underWay.has(nodeId)) return before.map(({ command }) => command);
      const claiming = claimAll(nodeId, open.slice(0, room));
      const claimed = await withDeadline(claiming, tuning.claimWaitMs);
      if (claimed === timedOut) {
        void claiming.then((mine) => {
          if (mine.length > 0) late.set(nodeId, [...(late.get(nodeId) ?? []), ...mine]);
        });
        return before.map(({ command }) => command);
      }
      return [...before, ...claimed].map(({ command }) => command);
    },
    close: () => loop.close(),
  };
}

/**
 * Who sends a queued command to its agent: whoever first puts its claim into the read store, so each command is sent at
 * most once, whatever number of instances and sessions there are. Not the queue: that is the log.
 * Implements `agent-protocol.md`, Heartbeats, commands, metrics.
 */
import { startLoop } from '../kernel/background.js';
import type { Clock } from '../kernel/clock.js';
import { timestamp } from '../kernel/clock.js';
import { errorText } from '../kernel/errors.js';
import { limits } from '../kernel/limits.js';
import type { Logger } from '../kernel/logger.js';
import type { CollectionSpec, ReadStore } from '../storage/read-store.js';

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
   * not confirm is not sent: at most once, never twice.
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

  async function claimOne(nodeId: string, { id, expires_at }: Queued<unknown>): Promise<boolean> {
    try {
      const mine = await claims.insert(id, { node_id: nodeId, expires_at });
      settled.set(id, expires_at);
      return mine;
    } catch (error) {
      logger.warn({ node_id: nodeId, error: errorText(error) }, 'a command to an agent could not be claimed');
      return false;
    }
  }

  /** A claim is of no use once its command has expired. */
  async function purge(): Promise<void> {
    const now = timestamp(clock.now());
    for (const [id, expires] of settled) if (expires <= now) settled.delete(id);
    const old = await claims.find({
      where: [{ field: 'expires_at', op: 'lte', value: timestamp(clock.now() - limits.agent.commandExpiryMs) }],
      limit: limits.telemetry.batchDocuments,
    });
    if (old.items.length > 0) await claims.remove(old.items.map(({ id }) => id));
  }
  const loop = startLoop(limits.agent.commandExpiryMs, purge, (error) => {
    logger.warn({ error: errorText(error) }, 'old claims of commands could not be removed');
  });

  return {
    async claim<Name>(nodeId: string, queued: readonly Queued<Name>[]) {
      const now = timestamp(clock.now());
      const open = queued.filter(({ id, expires_at }) => expires_at > now && !settled.has(id));
      const names: Name[] = [];
      for (const queuedOne of open.slice(0, limits.agent.commandsPerHeartbeat)) {
        if (await claimOne(nodeId, queuedOne)) names.push(queuedOne.command);
      }
      return names;
    },
    close: () => loop.close(),
  };
}

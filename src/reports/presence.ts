/**
 * Presence in the store: one lease per node, held by its live session and renewed in batches; without renewal it ends by the
 * store's clock. `table.ts` answers who is online. Implements
 * `docs/contract/agent-protocol.md#heartbeats-commands-metrics`.
 */
import { startLoop, timedOut, withDeadline } from '../kernel/background.js';
import { shutdownMs } from '../kernel/closers.js';
import { createKeyedBatch } from '../kernel/keyed-batch.js';
import type { Json } from '../kernel/json.js';
import { createListeners } from '../kernel/listeners.js';
import { logsWarning, type Logger } from '../kernel/logger.js';
import { storeRetry } from '../kernel/retry.js';
import type { Lease, LeaseClaim, Leases } from '../storage/read-store.js';
import type { PresenceFacts } from './port.js';
import { tuning } from './tuning.js';

const releaseTimeoutMs = 2_000;
/** Presence that ended this long ago is deleted; `last_seen_at` stays. */
const presencePurgeAfterMs = 24 * 60 * 60_000;
const presencePurgeEveryMs = 10 * 60_000;

const presenceKind = 'presence';

export interface HeldPresence {
  readonly nodeId: string;
  readonly facts: PresenceFacts;
  /** How much longer it counts without another sign of life. */
  readonly remainingMs: number;
}

interface Renewal {
  readonly nodeId: string;
  readonly facts: PresenceFacts;
  readonly ttlMs: number;
}

export type Presence = ReturnType<typeof createPresence>;

export function createPresence(leases: Leases, logger: Logger) {
  const { batchMs, batchDocuments, waitingNodes } = tuning;
  const lost = createListeners<Renewal>(logsWarning(logger, 'a listener for lost presence failed'));
  /**
   * This instance's sessions by id, each with the take of its lease. A renewal for any other session is late and
   * ignored.
   */
  const localSessions = new Map<string, Promise<void>>();
  const complain = logsWarning(logger, 'presence could not be written yet');
  const common = {
    everyMs: batchMs,
    batchEntries: batchDocuments,
    maxEntries: waitingNodes,
    retry: storeRetry,
    closeWithinMs: shutdownMs,
    onError: complain,
  };

  /** By node: a call of the store names leases by node. */
  const renewals = createKeyedBatch<Renewal>({
    ...common,
    write: async (entries) => {
      const own = new Map(entries.filter(([, { facts }]) => localSessions.has(facts.session_id)));
      if (own.size === 0) return;
      const refused = await leases.renew(presenceKind, [...own.values()].map(claimOf));
      for (const nodeId of refused) await retake(own.get(nodeId));
    },
  });

  /** Leases that could not be released at once. */
  const releases = createKeyedBatch<string>({
    ...common,
    write: async (entries) => {
      for (const [sessionId, nodeId] of entries) await leases.release(presenceKind, nodeId, sessionId);
    },
  });

  /** Takes a lease that could not be renewed if it is free, as after a restore; otherwise another session holds it. */
  const retake = async (renewal: Renewal | undefined): Promise<void> => {
    if (renewal === undefined || !localSessions.has(renewal.facts.session_id)) return;
    if (await leases.acquire(presenceKind, claimOf(renewal))) return;
    if (!localSessions.delete(renewal.facts.session_id)) return;
    lost.tell(renewal);
  };

  const purge = startLoop(presencePurgeEveryMs, () => leases.purge(presenceKind, presencePurgeAfterMs), complain);

  return {
    /** Durable when it returns. @throws ServiceError `unavailable` */
    async opened(nodeId: string, facts: PresenceFacts, ttlMs: number): Promise<void> {
      const taken = leases.take(presenceKind, claimOf({ nodeId, facts, ttlMs }));
      localSessions.set(facts.session_id, taken);
      try {
        await taken;
      } catch (error) {
        localSessions.delete(facts.session_id);
        throw error;
      }
    },
    alive(nodeId: string, facts: PresenceFacts, ttlMs: number): void {
      if (!localSessions.has(facts.session_id)) return;
      renewals.put(nodeId, { nodeId, facts, ttlMs });
    },
    async ended(nodeId: string, sessionId: string): Promise<void> {
      const taken = localSessions.get(sessionId);
      localSessions.delete(sessionId);
      if (renewals.get(nodeId)?.facts.session_id === sessionId) renewals.delete(nodeId);
      const release = async (): Promise<void> => {
        // The store may carry out a release before a take that was asked for earlier.
        await taken?.catch(() => undefined);
        await leases.release(presenceKind, nodeId, sessionId);
      };
      const outcome = await withDeadline(release(), releaseTimeoutMs).catch((error: unknown) => {
        complain(error);
        return timedOut;
      });
      // The lease would end by itself, only later.
      if (outcome === timedOut) releases.put(sessionId, nodeId);
    },
    onLost: (listener: (nodeId: string, sessionId: string) => void): (() => void) =>
      lost.add(({ nodeId, facts }) => listener(nodeId, facts.session_id)),
    /** Every node that is online. @throws ServiceError `unavailable` */
    async all(): Promise<readonly HeldPresence[]> {
      return (await leases.list(presenceKind)).flatMap((lease) => {
        const facts = factsOf(lease);
        return facts === undefined ? [] : [{ nodeId: lease.name, facts, remainingMs: lease.remainingMs }];
      });
    },
    async flush(): Promise<void> {
      await renewals.flush();
      await releases.flush();
    },
    async close(): Promise<void> {
      await purge.close();
      await renewals.close();
      await releases.close();
    },
  };
}

function claimOf({ nodeId, facts, ttlMs }: Renewal): LeaseClaim {
  return { name: nodeId, holder: facts.session_id, ttlMs, data: { ...facts } };
}

function factsOf(lease: Lease): PresenceFacts | undefined {
  if (typeof lease.data !== 'object' || lease.data === null) return undefined;
  const data = lease.data as { readonly [field: string]: Json };
  const { session_id, instance_id, pushed_generation, pushed_at } = data;
  if (typeof session_id !== 'string' || typeof instance_id !== 'string') return undefined;
  return {
    session_id,
    instance_id,
    pushed_generation: typeof pushed_generation === 'number' ? pushed_generation : 0,
    pushed_at: typeof pushed_at === 'string' ? pushed_at : null,
  };
}

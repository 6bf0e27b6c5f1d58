/**
 * This instance among the others: the lease that says it lives, and the wait until every instance has closed a revoked
 * node's sessions. Puts `instance-lease.ts` and `session-cuts.ts` together, as each of them needs the other.
 */
import type { Clock } from '../kernel/clock.js';
import type { Logger } from '../kernel/logger.js';
import type { ReadStore } from '../storage/read-store.js';
import { liveInstances, startInstanceLease } from './instance-lease.js';
import { createSessionCuts } from './session-cuts.js';

export interface MembershipDeps {
  readonly readStore: Pick<ReadStore, 'leases'>;
  readonly instanceId: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly compilerVersion: number;
  /** Log position that every read model of this instance holds. */
  position(): number;
  /** Revision of `svc-fleet` that this instance has folded. */
  revision(): number;
  /** Calls back with each node whose PSK was replaced or that was deleted. */
  onRevoked(listener: (nodeId: string) => void): void;
  /** True once the sessions that the node has on this instance are closed, false after `timeoutMs`. */
  sessionsEnded(nodeId: string, timeoutMs: number): Promise<boolean>;
}

export interface Membership {
  /** True once every live instance has closed the sessions of a node that was revoked at a revision, else false in time. */
  sessionsEnded(nodeId: string, timeoutMs: number, revision?: number): Promise<boolean>;
  /** Ends the lease. Never rejects. */
  close(): Promise<void>;
}

/** @throws ServiceError `unavailable` */
export async function joinCluster(deps: MembershipDeps): Promise<Membership> {
  const { readStore, instanceId, clock, logger, compilerVersion } = deps;
  const cuts = createSessionCuts({
    instanceId,
    clock,
    logger,
    revision: deps.revision,
    sessionsEnded: deps.sessionsEnded,
    liveInstances: () => liveInstances(readStore),
    publish: async () => (await lease).publish(),
  });
  deps.onRevoked(cuts.revoked);
  const lease = startInstanceLease({
    readStore,
    instanceId,
    clock,
    logger,
    position: deps.position,
    cut: cuts.cut,
    compilerVersion,
  });
  const { close } = await lease;
  return { sessionsEnded: cuts.ended, close };
}

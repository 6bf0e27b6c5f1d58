/**
 * The followers of the log as one value: the committed fleet, the stored read models and the accounts view. It answers
 * what only all of them together can: may this instance write, should it get traffic, would a GET show a command.
 * It neither starts nor closes them, which is the wiring's. Implements `docs/contract/rest.md#consistency`.
 */
import type { AccountsView } from '../accounts/view.js';
import type { ProjectionWait } from '../commands/port.js';
import type { DeliveryService } from '../delivery/delivery.js';
import type { Clock } from '../kernel/clock.js';
import { streams } from '../kernel/event.js';
import type { Logger } from '../kernel/logger.js';
import type { LogChain } from '../log-chain/log-chain.js';
import type { NumberSource } from '../operations/metrics.js';
import type { CommittedFleet } from '../projections/fleet/committed-fleet.js';
import type { Projections } from '../projections/port.js';
import type { EventStore } from '../storage/event-store.js';
import { followerMetrics } from './follower-metrics.js';
import { notReady, readOnlyReason } from './readiness.js';
import { waitForLog, waitForProjections } from './waits.js';

export interface FollowerParts {
  readonly committed: Pick<CommittedFleet, 'fleet' | 'state' | 'passed'>;
  readonly delivery: Pick<DeliveryService, 'stats'>;
  readonly projections: Pick<Projections, 'status' | 'applied' | 'reached' | 'revision'>;
  readonly accounts: Pick<AccountsView, 'failure' | 'applied' | 'caughtUp'>;
  readonly logChain: Pick<LogChain, 'broken'>;
  readonly clock: Clock;
}

export interface Followers extends ProjectionWait {
  /** Waits, at the start, until each has read what was in the log. @throws ServiceError `unavailable` */
  caughtUp(eventStore: EventStore, logger: Logger): Promise<void>;
  /** Why nothing may be written, or undefined. */
  readOnlyReason(): string | undefined;
  /** Why this instance should get no traffic, the stores aside; empty when it should. */
  notReady(): readonly string[];
  /** Log position that every read model holds. */
  position(): number;
  /** True once a GET shows all that lies up to the log position, false after `timeoutMs`. */
  reached(position: number, timeoutMs: number): Promise<boolean>;
  metrics(): readonly NumberSource[];
}

export function createFollowers({
  committed,
  delivery,
  projections,
  accounts,
  logChain,
  clock,
}: FollowerParts): Followers {
  // Generations, settings and users are shown from folds of their own, so these have to follow as well. All are waited
  // for at the same time: the caller's time is spent once.
  const applied = async (stream: string, revision: number, timeoutMs: number): Promise<boolean> => {
    const waits = [projections.applied(stream, revision, timeoutMs)];
    if (stream === streams.fleet) waits.push(committed.passed(revision, timeoutMs));
    if (stream === streams.accounts) waits.push(accounts.applied(stream, revision, timeoutMs));
    return (await Promise.all(waits)).every(Boolean);
  };

  return {
    async caughtUp(eventStore, logger) {
      await waitForLog(eventStore, committed, logger);
      // A log that cannot be followed makes the instance read-only; it does not keep it from starting.
      await accounts.caughtUp().catch((error: unknown) => {
        if (accounts.failure() === undefined) throw error;
      });
      const stopped = (): boolean => committed.state().kind === 'broken_log' || accounts.failure() !== undefined;
      await waitForProjections(projections, stopped, logger);
    },
    readOnlyReason: () => readOnlyReason(committed, projections, accounts, logChain),
    notReady: () => notReady(committed, projections, accounts, logChain),
    position: () => projections.status().position,
    applied,
    async reached(position, timeoutMs) {
      const until = clock.monotonic() + timeoutMs;
      if (!(await projections.reached(position, timeoutMs))) return false;
      const folded = [streams.fleet, streams.accounts].map((stream) => {
        const revision = projections.revision(stream);
        return revision === undefined || applied(stream, revision, Math.max(0, until - clock.monotonic()));
      });
      return (await Promise.all(folded)).every(Boolean);
    },
    metrics: () => followerMetrics(committed, delivery, projections, logChain),
  };
}

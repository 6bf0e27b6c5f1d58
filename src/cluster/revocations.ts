/**
 * Waits until every instance has closed a revoked node's sessions: each says in its lease up to which revision of
 * `svc-fleet` it has done so. Does not close them: the agent transport does.
 * Implements `docs/contract/agent-protocol.md#several-instances`.
 */
import type { Clock } from '../kernel/clock.js';
import { errorText } from '../kernel/errors.js';
import { limits } from '../kernel/limits.js';
import type { Logger } from '../kernel/logger.js';
import type { LiveInstance } from './instance-lease.js';
import { waitUntil } from './wait-until.js';

export interface RevocationsDeps {
  readonly instanceId: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Revision of `svc-fleet` that this instance has folded; `revoked` was called for every revocation up to it. */
  revision(): number;
  /** True once the sessions that the node has on this instance are closed, false after `timeoutMs`. */
  sessionsEnded(nodeId: string, timeoutMs: number): Promise<boolean>;
  liveInstances(): Promise<readonly LiveInstance[]>;
  /** Renews this instance's lease at once, with the value of `closedUpTo()`. */
  publish(): Promise<void>;
}

export interface Revocations {
  /** A node's PSK was replaced or the node was deleted, on any instance. */
  revoked(nodeId: string): void;
  /** Revision up to which this instance has closed the sessions of every revoked node. */
  closedUpTo(): number;
  /**
   * True once every live instance has closed the node's sessions, false after `timeoutMs`.
   * @param revision that of the revocation: this instance may not have folded it yet. Without one, what it has folded
   */
  ended(nodeId: string, timeoutMs: number, revision?: number): Promise<boolean>;
}

export function createRevocations(deps: RevocationsDeps): Revocations {
  const { instanceId, clock, logger } = deps;
  let revocationsUnderWay = 0;
  let lastClosed = deps.revision();

  function closedUpTo(): number {
    if (revocationsUnderWay === 0) lastClosed = deps.revision();
    return lastClosed;
  }

  async function awaitClosed(nodeId: string): Promise<void> {
    // Within this time the transport also closes the socket of a peer that does not read.
    await deps.sessionsEnded(nodeId, 2 * limits.agent.sessionsEndedWaitMs);
    revocationsUnderWay -= 1;
    if (revocationsUnderWay === 0) await deps.publish();
  }

  async function othersHaveClosed(revision: number): Promise<boolean> {
    const instances = await deps.liveInstances();
    return instances.every((instance) => instance.instance_id === instanceId || instance.revoked_up_to >= revision);
  }

  return {
    revoked(nodeId) {
      // The revision already includes this revocation: until its sessions are closed, the last answer stays.
      revocationsUnderWay += 1;
      awaitClosed(nodeId).catch((error: unknown) => {
        logger.warn(
          { node_id: nodeId, error: errorText(error) },
          'the end of a revoked session could not be published',
        );
      });
    },
    closedUpTo,
    async ended(nodeId, timeoutMs, revision = deps.revision()) {
      const until = clock.monotonic() + timeoutMs;
      // Before the revocation is folded, the sessions that it ends are not being closed.
      if (!(await waitUntil(clock, until, () => deps.revision() >= revision))) return false;
      if (!(await deps.sessionsEnded(nodeId, Math.max(0, until - clock.monotonic())))) return false;
      return waitUntil(clock, until, async () => {
        try {
          return await othersHaveClosed(revision);
        } catch (error) {
          logger.warn({ error: errorText(error) }, 'the leases of the other instances cannot be read');
          return false;
        }
      });
    },
  };
}

/**
 * Waits until every live instance has closed a revoked node's sessions, or refuses the tokens that a password change has
 * ended, as each states in its lease. Implements `docs/contract/agent-protocol.md#several-instances` and
 * `docs/contract/rest.md#authentication-and-roles`.
 */
import { sleep } from '../kernel/background.js';
import type { Clock } from '../kernel/clock.js';
import { errorText } from '../kernel/errors.js';
import { limits } from '../kernel/limits.js';
import { logsWarning, type Logger } from '../kernel/logger.js';
import type { LiveInstance } from './instance-lease.js';

/** How often the leases of the other instances are read, in milliseconds. */
const pollMs = 25;

export interface RevocationsDeps extends OtherInstances {
  /** Revision of `svc-fleet` that this instance has folded; `revoked` was called for every revocation up to it. */
  revision(): number;
  /** True once the node's sessions on this instance are closed, false after `timeoutMs`. */
  sessionsEnded(nodeId: string, timeoutMs: number): Promise<boolean>;
  /** Renews this instance's lease at once, with the value of `closedUpTo()`. */
  publish(): Promise<void>;
}

export interface Revocations {
  /** A node was deleted or its PSK replaced, on any instance. */
  revoked(nodeId: string): void;
  /** Revision up to which this instance has closed the sessions of every revoked node. */
  closedUpTo(): number;
  /**
   * True once every live instance has closed the node's sessions, false after `timeoutMs`.
   * @param revision the revision of the revocation, which this instance may not have folded yet; by default everything
   *   it has folded
   */
  ended(nodeId: string, timeoutMs: number, revision?: number): Promise<boolean>;
}

export function createRevocations(deps: RevocationsDeps): Revocations {
  const { clock, logger } = deps;
  let revocationsUnderWay = 0;
  let lastClosed = deps.revision();

  function closedUpTo(): number {
    if (revocationsUnderWay === 0) lastClosed = deps.revision();
    return lastClosed;
  }

  async function awaitClosed(nodeId: string): Promise<void> {
    // Within this time, the transport also closes the socket of a peer that does not read.
    await deps.sessionsEnded(nodeId, 2 * limits.agent.sessionsEndedWaitMs);
    revocationsUnderWay -= 1;
    if (revocationsUnderWay === 0) await deps.publish();
  }

  return {
    revoked(nodeId) {
      // The revision already includes this revocation: until its sessions are closed, the previous answer stands.
      revocationsUnderWay += 1;
      awaitClosed(nodeId).catch(
        logsWarning(logger, 'the end of a revoked session could not be published', { node_id: nodeId }),
      );
    },
    closedUpTo,
    async ended(nodeId, timeoutMs, revision = deps.revision()) {
      const until = clock.monotonic() + timeoutMs;
      // Before the revocation is folded, the sessions that it ends are not being closed.
      if (!(await waitUntil(clock, until, () => deps.revision() >= revision))) return false;
      if (!(await deps.sessionsEnded(nodeId, Math.max(0, until - clock.monotonic())))) return false;
      return othersHave(deps, until, (other) => other.revoked_up_to >= revision);
    },
  };
}

export interface OtherInstances {
  /** Undefined for a maintenance command, which is not an instance. */
  readonly instanceId: string | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
  liveInstances(): Promise<readonly LiveInstance[]>;
}

/** True once every other live instance has read a revision of `svc-accounts`, false after `timeoutMs`. */
export function tokensEnded(deps: OtherInstances, revision: number, timeoutMs: number): Promise<boolean> {
  return othersHave(deps, deps.clock.monotonic() + timeoutMs, (other) => other.accounts >= revision);
}

/** True once every other live instance has closed the sessions that ended up to a revision of `svc-fleet`. */
export function sessionsEndedOnOthers(deps: OtherInstances, revision: number, timeoutMs: number): Promise<boolean> {
  return othersHave(deps, deps.clock.monotonic() + timeoutMs, (other) => other.revoked_up_to >= revision);
}

/** @param until by the monotonic clock, in milliseconds @returns false if the condition does not hold for all */
async function othersHave(
  { instanceId, clock, logger, liveInstances }: OtherInstances,
  until: number,
  condition: (other: LiveInstance) => boolean,
): Promise<boolean> {
  return waitUntil(clock, until, async () => {
    try {
      return (await liveInstances()).every((other) => other.instance_id === instanceId || condition(other));
    } catch (error) {
      logger.warn({ error: errorText(error) }, 'the leases of the other instances cannot be read');
      return false;
    }
  });
}

async function waitUntil(clock: Clock, until: number, condition: () => boolean | Promise<boolean>): Promise<boolean> {
  while (!(await condition())) {
    if (clock.monotonic() >= until) return false;
    await sleep(pollMs);
  }
  return true;
}

/**
 * That no session of a revoked node is left on any instance: each instance says in its lease up to which revision of
 * `svc-fleet` it has cut what it had to cut, and whoever replaced a PSK waits for all of them.
 * Implements `docs/contract/agent-protocol.md#several-instances`.
 */
import { sleep } from '../kernel/background.js';
import type { Clock } from '../kernel/clock.js';
import { errorText } from '../kernel/errors.js';
import { limits } from '../kernel/limits.js';
import type { Logger } from '../kernel/logger.js';
import type { LiveInstance } from './instance-lease.js';
import { tuning } from './tuning.js';

export interface SessionCutsDeps {
  readonly instanceId: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Revision of `svc-fleet` that this instance has folded: every revocation up to it has been told to `revoked`. */
  revision(): number;
  /** True once the sessions that the node has here now are gone. */
  sessionsEnded(nodeId: string, timeoutMs: number): Promise<boolean>;
  liveInstances(): Promise<readonly LiveInstance[]>;
  /** Puts `cut()` into this instance's lease at once. */
  publish(): Promise<void>;
}

export interface SessionCuts {
  /** A node's PSK was replaced or the node deleted, on whichever instance. */
  revoked(nodeId: string): void;
  /** Every revocation up to this revision has been carried out here. */
  cut(): number;
  /** True once every live instance has cut the node's sessions, false after `timeoutMs`. */
  ended(nodeId: string, timeoutMs: number): Promise<boolean>;
}

export function createSessionCuts(deps: SessionCutsDeps): SessionCuts {
  const { instanceId, clock, logger } = deps;
  let cutting = 0;
  let last = deps.revision();

  function cut(): number {
    if (cutting === 0) last = deps.revision();
    return last;
  }

  async function carryOut(nodeId: string): Promise<void> {
    // What stands is cut by its transport; a peer that does not read is cut at the socket within this time.
    await deps.sessionsEnded(nodeId, 2 * limits.agent.sessionsEndedWaitMs);
    cutting -= 1;
    if (cutting === 0) await deps.publish();
  }

  async function othersHaveCut(revision: number): Promise<boolean> {
    const instances = await deps.liveInstances();
    return instances.every((instance) => instance.instance_id === instanceId || instance.cut >= revision);
  }

  return {
    revoked(nodeId) {
      cut();
      cutting += 1;
      carryOut(nodeId).catch((error: unknown) => {
        logger.warn(
          { node_id: nodeId, error: errorText(error) },
          'the end of a revoked session could not be published',
        );
      });
    },
    cut,
    async ended(nodeId, timeoutMs) {
      const until = clock.monotonic() + timeoutMs;
      const revision = deps.revision();
      if (!(await deps.sessionsEnded(nodeId, timeoutMs))) return false;
      for (;;) {
        try {
          if (await othersHaveCut(revision)) return true;
        } catch (error) {
          logger.warn({ error: errorText(error) }, 'the other instances can not be asked');
        }
        if (clock.monotonic() >= until) return false;
        await sleep(tuning.cutsPollMs);
      }
    },
  };
}

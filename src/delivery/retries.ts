/**
 * When a rejected newest generation becomes its node's target again: after a time that grows, and when the agent was told to
 * reload. The schedule lies in the node's apply history record, so it outlives the node's sessions here, and begins anew on
 * another instance. This decides when; which snapshot is the target then is in `target.ts`.
 * Implements `docs/contract/agent-protocol.md#configuration`, "A reject is not for ever".
 */
import type { Clock } from '../kernel/clock.js';
import { limits } from '../kernel/limits.js';
import type { ApplyHistories, ApplyHistoryRecord } from './apply-history.js';

/** The retries of one rejected generation. Times are monotonic milliseconds. */
export interface Retry {
  readonly generation: number;
  readonly rejectedAt: number;
  /** How often it has fallen due. */
  times: number;
  dueAt: number;
  /** It is the target until the node reports on it. */
  isTarget: boolean;
  /** The session that was offered it since it became the target: a reject on another one repeats an earlier report. */
  offeredTo: string | undefined;
}

export interface Retries {
  /** The node rejected a snapshot, on this session. */
  rejected(record: ApplyHistoryRecord, generation: number, sessionId: string): void;
  /** A request of the node's agent is about to be answered: retries that fell due while it was away are due now. */
  asked(record: ApplyHistoryRecord): void;
  /** The agent was told to ask for its whole configuration. */
  reload(record: ApplyHistoryRecord): void;
  /** Offers what has fallen due to nodes with a session here, as many as a second may: to be called once a second. */
  tick(): void;
}

export interface RetriesDeps {
  readonly histories: Pick<ApplyHistories, 'peek'>;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** From 0 to 1. */
  random(): number;
  /** The newest generation of a node. */
  generation(nodeId: string): number | undefined;
  /** Offers the node's newest snapshot to its sessions, although they were offered it before. */
  offer(nodeId: string): void;
}

/** The rejected generation that is the node's target all the same. */
export const tryAgain = ({ retry }: ApplyHistoryRecord): number | undefined =>
  retry?.isTarget === true ? retry.generation : undefined;

const { afterMs, everyMs, jitter, nodesPerSecond } = limits.fleet.rejectRetry;

export function createRetries(deps: RetriesDeps): Retries {
  const { clock } = deps;
  /** Nodes with a session here that rejected their newest generation. */
  const nodes = new Set<string>();
  const jittered = (ms: number): number => Math.round(ms * (1 - jitter + 2 * jitter * deps.random()));

  /** @returns undefined for a node that has not rejected its newest generation */
  const retryOf = (record: ApplyHistoryRecord): Retry | undefined => {
    const generation = deps.generation(record.nodeId);
    if (generation === undefined || !record.history.rejected.some((reject) => reject.generation === generation)) {
      record.retry = undefined;
      return undefined;
    }
    nodes.add(record.nodeId);
    if (record.retry?.generation !== generation) {
      const rejectedAt = clock.monotonic();
      const dueAt = rejectedAt + jittered(afterMs[0]);
      record.retry = { generation, rejectedAt, times: 0, dueAt, isTarget: false, offeredTo: undefined };
    }
    return record.retry;
  };

  const becomeTarget = (retry: Retry): void => {
    retry.isTarget = true;
    retry.offeredTo = undefined;
  };

  /** @returns whether it has fallen due since it was asked last */
  const hasFallenDue = (retry: Retry): boolean => {
    const now = clock.monotonic();
    if (now < retry.dueAt) return false;
    // Several may have passed while the node was away: they are one.
    while (retry.dueAt <= now) {
      retry.times += 1;
      const after = afterMs[retry.times];
      retry.dueAt = after === undefined ? now + jittered(everyMs) : retry.rejectedAt + jittered(after);
    }
    becomeTarget(retry);
    return true;
  };

  return {
    rejected(record, generation, sessionId) {
      const retry = retryOf(record);
      if (retry?.generation === generation && retry.offeredTo === sessionId) retry.isTarget = false;
    },
    asked(record) {
      const retry = retryOf(record);
      if (retry !== undefined) hasFallenDue(retry);
    },
    reload(record) {
      const retry = retryOf(record);
      if (retry !== undefined) becomeTarget(retry);
    },
    tick() {
      let left: number = nodesPerSecond;
      for (const nodeId of nodes) {
        if (left === 0) break;
        const record = deps.histories.peek(nodeId);
        const retry = record && retryOf(record);
        if (retry === undefined) nodes.delete(nodeId);
        else if (hasFallenDue(retry)) {
          left -= 1;
          deps.offer(nodeId);
        }
      }
    },
  };
}

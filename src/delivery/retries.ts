/**
 * When a rejected newest generation becomes its node's target again: after growing delays, and when the agent is told to
 * reload. The schedule is kept in the node's apply history record, so it outlives sessions, and starts over on another instance.
 * `target.ts` chooses the target. Implements `docs/contract/agent-protocol.md#configuration`, "A reject is not for ever".
 */
import type { Clock } from '../kernel/clock.js';
import { limits } from '../kernel/limits.js';
import type { ApplyHistories, ApplyHistoryRecord, Retry } from './apply-history.js';

export interface RetriesDeps {
  readonly histories: Pick<ApplyHistories, 'peek'>;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** From 0 to 1. */
  random(): number;
  /** The newest generation of a node. */
  generation(nodeId: string): number | undefined;
  /** Offers the node's newest snapshot to its sessions again. */
  offer(nodeId: string): void;
}

/** The rejected generation that is the target again, if any. */
export const tryAgain = ({ retry }: ApplyHistoryRecord): number | undefined =>
  retry?.isTarget === true ? retry.generation : undefined;

const { afterMs, everyMs, jitter, nodesPerSecond } = limits.fleet.rejectRetry;

export type Retries = ReturnType<typeof createRetries>;

export function createRetries(deps: RetriesDeps) {
  const { clock } = deps;
  /** Nodes with a session here that rejected their newest generation. */
  const nodes = new Set<string>();
  const jittered = (ms: number): number => Math.round(ms * (1 - jitter + 2 * jitter * deps.random()));

  /** Undefined for a node that has not rejected its newest generation. */
  const retryOf = (record: ApplyHistoryRecord): Retry | undefined => {
    const generation = deps.generation(record.nodeId);
    const reject = record.history.rejected.find((one) => one.generation === generation);
    if (generation === undefined || reject === undefined) {
      record.retry = undefined;
      return undefined;
    }
    nodes.add(record.nodeId);
    if (record.retry?.generation !== generation) {
      const rejectedAt = clock.monotonic();
      const dueAt = reject.unconfirmed === true ? Infinity : rejectedAt + jittered(afterMs[0]);
      record.retry = { generation, rejectedAt, times: 0, dueAt, isTarget: false, offeredTo: undefined };
    }
    return record.retry;
  };

  const becomeTarget = (retry: Retry): void => {
    retry.isTarget = true;
    retry.offeredTo = undefined;
  };

  /** Whether it has fallen due since the last call. */
  const hasFallenDue = (retry: Retry): boolean => {
    const now = clock.monotonic();
    if (now < retry.dueAt) return false;
    // Several that passed while the node was away count as one.
    while (retry.dueAt <= now) {
      retry.times += 1;
      const after = afterMs[retry.times];
      retry.dueAt = after === undefined ? now + jittered(everyMs) : retry.rejectedAt + jittered(after);
    }
    becomeTarget(retry);
    return true;
  };

  return {
    /** The node rejected a snapshot in this session. */
    rejected(record: ApplyHistoryRecord, generation: number, sessionId: string): void {
      const retry = retryOf(record);
      if (retry?.generation === generation && retry.offeredTo === sessionId) retry.isTarget = false;
    },
    /** A request is about to be answered: a retry that fell due meanwhile is due now. */
    asked(record: ApplyHistoryRecord): void {
      const retry = retryOf(record);
      if (retry !== undefined) hasFallenDue(retry);
    },
    /** The agent was told to ask for its whole configuration. */
    reload(record: ApplyHistoryRecord): void {
      const retry = retryOf(record);
      if (retry !== undefined) becomeTarget(retry);
    },
    /** Offers due retries to nodes with a session here, up to the limit per second. Must be called once a second. */
    tick(): void {
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

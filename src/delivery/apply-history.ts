/**
 * The apply history of each node that has a session here: its last-good snapshot and the snapshots that it rejected.
 * Loaded when the node's first session needs it, from the recorded facts and the last-good snapshots. Rejects and their
 * times of retry outlive the session. Implements `docs/contract/agent-protocol.md#configuration`.
 */
import { timedOut, withDeadline } from '../kernel/background.js';
import { ServiceError } from '../kernel/errors.js';
import { createLru } from '../kernel/lru.js';
import type { LastGoodSnapshots } from './last-good.js';
import type { RecordedApplyReports, ApplyHistory } from './target.js';
import type { Retry } from './retries.js';
import { applyHistoryOf } from './target.js';
import { tuning } from './tuning.js';

/** One node's apply history, shared by its sessions. */
export interface ApplyHistoryRecord {
  readonly nodeId: string;
  history: ApplyHistory;
  /**
   * False when the next apply report is recorded even if it is a repeat: the last one was not recorded, or the next one
   * ends a version conflict.
   */
  recorded: boolean;
  /** When the last report came, or was recorded, by this instance's wall clock; 0 for none. */
  reportedAt: number;
  /** When the rejected newest generation is due to be tried again; undefined when this instance does not know. */
  retry: Retry | undefined;
}

export interface ApplyHistories {
  /** Loads the record, or returns the loaded one. @throws ServiceError `unavailable` when the read store is too slow */
  load(nodeId: string): Promise<ApplyHistoryRecord>;
  /** The record if it is loaded. */
  peek(nodeId: string): ApplyHistoryRecord | undefined;
  /** The node's last session has ended: only what must outlive it is remembered. */
  release(nodeId: string): void;
  /** The node was deleted. */
  forget(nodeId: string): void;
  /** How many nodes with a session here rejected their newest generation. */
  rejecting(newestGeneration: (nodeId: string) => number | undefined): number;
}

export interface ApplyHistoriesDeps {
  readonly lastGood: Pick<LastGoodSnapshots, 'stamp'>;
  nodeFacts(nodeId: string): RecordedApplyReports;
}

interface Active {
  record: ApplyHistoryRecord | undefined;
  readonly loading: Promise<ApplyHistoryRecord>;
}

/** When what is recorded was reported last; 0 for a node that never did. */
function reportedAt(facts: RecordedApplyReports): number {
  return Math.max(0, ...[facts.applied, facts.rejected].flatMap((report) => (report ? [Date.parse(report.at)] : [])));
}

export function createApplyHistories(deps: ApplyHistoriesDeps): ApplyHistories {
  const active = new Map<string, Active>();
  const released = createLru<ApplyHistoryRecord>(tuning.rememberedNodes);

  const read = async (nodeId: string): Promise<ApplyHistoryRecord> => {
    const lastGood = await withDeadline(deps.lastGood.stamp(nodeId), tuning.requestWaitMs);
    if (lastGood === timedOut) throw new ServiceError('unavailable', 'the read store does not answer');
    const facts = deps.nodeFacts(nodeId);
    const remembered = released.get(nodeId);
    released.delete(nodeId);
    const conflict = facts.version_conflict_at !== null;
    const recorded = !conflict && remembered?.recorded !== false;
    // The node may have been on another instance since. But what was recorded a moment ago may not be folded yet.
    if (remembered !== undefined && remembered.reportedAt >= reportedAt(facts)) {
      // The record itself: a fact that is still being written says in it what became of it.
      remembered.history = { ...remembered.history, lastGood };
      remembered.recorded = recorded;
      return remembered;
    }
    const history = applyHistoryOf(facts, lastGood);
    return { nodeId, history, recorded, reportedAt: 0, retry: remembered?.retry };
  };

  const load = (nodeId: string): Promise<ApplyHistoryRecord> => {
    const existing = active.get(nodeId);
    if (existing !== undefined) return existing.loading;
    const loading = read(nodeId).then(
      (record) => {
        entry.record = record;
        return record;
      },
      (error: unknown) => {
        if (active.get(nodeId) === entry) active.delete(nodeId);
        throw error;
      },
    );
    const entry: Active = { record: undefined, loading };
    active.set(nodeId, entry);
    return loading;
  };

  return {
    load,
    peek: (nodeId) => active.get(nodeId)?.record,
    release(nodeId) {
      const record = active.get(nodeId)?.record;
      active.delete(nodeId);
      if (record === undefined) return;
      if (record.history.rejected.length > 0 || !record.recorded) released.set(nodeId, record);
    },
    forget(nodeId) {
      active.delete(nodeId);
      released.delete(nodeId);
    },
    rejecting(newestGeneration) {
      let count = 0;
      for (const [nodeId, { record }] of active) {
        // Nearly all nodes have rejected nothing; each reading of the metrics asks about the others.
        if (record === undefined || record.history.rejected.length === 0) continue;
        const generation = newestGeneration(nodeId);
        if (record.history.rejected.some((stamp) => stamp.generation === generation)) count += 1;
      }
      return count;
    },
  };
}

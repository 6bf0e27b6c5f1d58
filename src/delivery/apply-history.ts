/**
 * The apply history of each node with a session here: its last-good snapshot and the snapshots that it rejected. Loaded from
 * recorded facts and last-good snapshots when first needed. Rejects and their retries outlive the session. Implements `docs/contract/agent-protocol.md#configuration`.
 */
import { timedOut, withDeadline } from '../kernel/background.js';
import { ServiceError } from '../kernel/errors.js';
import { createLru } from '../kernel/lru.js';
import type { LastGoodSnapshots } from './last-good.js';
import { applyHistoryOf, type RecordedApplyReports, type ApplyHistory } from './target.js';
import { tuning } from './tuning.js';

/** The retries of one rejected generation. Times are monotonic milliseconds. */
export interface Retry {
  readonly generation: number;
  readonly rejectedAt: number;
  /** How often it has been due. */
  times: number;
  dueAt: number;
  /** It is the target until the node reports on it. */
  isTarget: boolean;
  /** The session that was offered the target; a reject from another session repeats an earlier report. */
  offeredTo: string | undefined;
}

/** One node's apply history, shared by its sessions. */
export interface ApplyHistoryRecord {
  readonly nodeId: string;
  history: ApplyHistory;
  /** False: the next report is recorded even if it is a repeat, because the last one was not, or to end a version conflict. */
  recorded: boolean;
  /** When the last report arrived or was recorded, by this instance's wall clock; 0 for none. */
  reportedAt: number;
  /** The retry of the rejected newest generation; undefined if this instance knows none. */
  retry: Retry | undefined;
}

export interface ApplyHistoriesDeps {
  readonly lastGood: Pick<LastGoodSnapshots, 'stamp'>;
  nodeFacts(nodeId: string): RecordedApplyReports;
}

interface Active {
  record: ApplyHistoryRecord | undefined;
  readonly loading: Promise<ApplyHistoryRecord>;
}

/** When the last recorded report was made; 0 without one. */
function reportedAt(facts: RecordedApplyReports): number {
  return Math.max(0, ...[facts.applied, facts.rejected].flatMap((report) => (report ? [Date.parse(report.at)] : [])));
}

export type ApplyHistories = ReturnType<typeof createApplyHistories>;

export function createApplyHistories(deps: ApplyHistoriesDeps) {
  const active = new Map<string, Active>();
  const released = createLru<ApplyHistoryRecord>(tuning.rememberedNodes);

  const read = async (nodeId: string): Promise<ApplyHistoryRecord> => {
    const lastGood = await withDeadline(deps.lastGood.stamp(nodeId), tuning.requestWaitMs);
    if (lastGood === timedOut) throw new ServiceError('unavailable', 'the read store does not answer');
    const facts = deps.nodeFacts(nodeId);
    const remembered = released.get(nodeId);
    const conflict = facts.version_conflict_at !== null;
    const recorded = !conflict && remembered?.recorded !== false;
    // Facts of another instance may be newer, but facts recorded here may not be folded yet.
    if (remembered !== undefined && remembered.reportedAt >= reportedAt(facts)) {
      // The same object, because a write in progress reports its outcome in it.
      const confirmed = Math.max(remembered.history.confirmed, facts.confirmed?.generation ?? 0);
      remembered.history = { ...remembered.history, lastGood, confirmed };
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
        // If the session has ended meanwhile, the history stays remembered.
        if (active.get(nodeId) === entry) released.delete(nodeId);
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
    /** @throws ServiceError `unavailable`, also when the read store is too slow */
    load,
    /** The record if it is loaded. */
    peek: (nodeId: string): ApplyHistoryRecord | undefined => active.get(nodeId)?.record,
    /** The node's last session has ended: keeps only what must outlive it. */
    release(nodeId: string): void {
      const record = active.get(nodeId)?.record;
      active.delete(nodeId);
      if (record === undefined) return;
      if (record.history.rejected.length > 0 || !record.recorded) released.set(nodeId, record);
    },
    /** The node was deleted. */
    forget(nodeId: string): void {
      active.delete(nodeId);
      released.delete(nodeId);
    },
    /** How many nodes with a session here rejected their newest generation. */
    rejecting(newestGeneration: (nodeId: string) => number | undefined): number {
      let count = 0;
      for (const [nodeId, { record }] of active) {
        if (record === undefined || record.history.rejected.length === 0) continue;
        const generation = newestGeneration(nodeId);
        if (record.history.rejected.some((stamp) => stamp.generation === generation)) count += 1;
      }
      return count;
    },
  };
}

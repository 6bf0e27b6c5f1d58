/**
 * What is known of each node that has a session here: which snapshot is kept of it and which it rejected. Loaded once
 * when its first session asks, from the recorded facts and the kept snapshots; verdicts outlive the session, for "once
 * more" is counted per instance. Implements `docs/contract/agent-protocol.md#configuration` ("Target").
 */
import { timedOut, withDeadline } from '../kernel/background.js';
import { ServiceError } from '../kernel/errors.js';
import { createLru } from '../kernel/lru.js';
import type { LastGoodSnapshots } from './last-good.js';
import type { RecordedApplyReports, ApplyHistory } from './target.js';
import { applyHistoryOf } from './target.js';
import { tuning } from './tuning.js';

/** One node's standing, shared by its sessions. */
export interface ApplyHistoryRecord {
  readonly nodeId: string;
  history: ApplyHistory;
  /** False when its next verdict is a fact even as a repeat: the last was not recorded, or it ends a version conflict. */
  recorded: boolean;
}

export interface ApplyHistories {
  /** @throws ServiceError `unavailable` when the read store does not answer in time */
  load(nodeId: string): Promise<ApplyHistoryRecord>;
  /** The record if it is loaded. */
  peek(nodeId: string): ApplyHistoryRecord | undefined;
  /** The node's last session has gone: only its verdicts are remembered. */
  rest(nodeId: string): void;
  forget(nodeId: string): void;
  /** How many nodes with a session here rejected their newest generation, which `newest` tells. */
  rejecting(newest: (nodeId: string) => number | undefined): number;
}

export interface ApplyHistoriesDeps {
  readonly lastGood: Pick<LastGoodSnapshots, 'stamp'>;
  nodeFacts(nodeId: string): Promise<RecordedApplyReports | undefined>;
}

interface Active {
  record: ApplyHistoryRecord | undefined;
  readonly loading: Promise<ApplyHistoryRecord>;
}

export function createApplyHistories(deps: ApplyHistoriesDeps): ApplyHistories {
  const active = new Map<string, Active>();
  const rested = createLru<string, Pick<ApplyHistoryRecord, 'history' | 'recorded'>>({
    maxEntries: tuning.rememberedNodes,
  });

  const read = async (nodeId: string): Promise<ApplyHistoryRecord> => {
    const reading = Promise.all([deps.nodeFacts(nodeId), deps.lastGood.stamp(nodeId)]);
    const answer = await withDeadline(reading, tuning.requestWaitMs);
    if (answer === timedOut) throw new ServiceError('unavailable', 'the read store does not answer');
    const [facts, lastGood] = answer;
    const remembered = rested.get(nodeId);
    rested.delete(nodeId);
    // What was recorded a moment ago may not be in the facts yet: what is remembered counts as well.
    const conflict = (facts?.version_conflict_at ?? null) !== null;
    const recorded = !conflict && remembered?.recorded !== false;
    return { nodeId, history: applyHistoryOf(remembered?.history, facts, lastGood), recorded };
  };

  const load = (nodeId: string): Promise<ApplyHistoryRecord> => {
    const known = active.get(nodeId);
    if (known !== undefined) return known.loading;
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
    rest(nodeId) {
      const record = active.get(nodeId)?.record;
      active.delete(nodeId);
      if (record === undefined) return;
      const { history, recorded } = record;
      if (history.rejected.length > 0 || !recorded) rested.set(nodeId, { history, recorded });
    },
    forget(nodeId) {
      active.delete(nodeId);
      rested.delete(nodeId);
    },
    rejecting(newest) {
      let count = 0;
      for (const [nodeId, { record }] of active) {
        const generation = newest(nodeId);
        if (record?.history.rejected.some((stamp) => stamp.generation === generation)) count += 1;
      }
      return count;
    },
  };
}

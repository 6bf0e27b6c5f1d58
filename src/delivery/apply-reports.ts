/**
 * What agents say of the snapshots they were given: takes apply reports and the confirmations in ConfigRequests, keeps
 * what was applied, records facts once. A word about any snapshot but the newest and the kept one is counted and
 * ignored. Implements `docs/contract/agent-protocol.md#configuration` (reports, confirmation).
 */
import type { AgentEvent, ApplyError } from '../domain/agents/facts.js';
import { limits } from '../kernel/limits.js';
import type { LastGoodSnapshots } from './last-good.js';
import type { NewestSnapshots } from './newest.js';
import type { ApplyReport } from './port.js';
import type { ApplyHistoryRecord } from './apply-history.js';
import type { Stamp } from './target.js';
import { afterApply, afterReject, hasRejected, sameStamp, snapshotNamed } from './target.js';

export interface ApplyReports {
  /** Takes a report. Resolves once its fact is durable. @throws ServiceError `unavailable` */
  report(record: ApplyHistoryRecord, outcome: ApplyReport): Promise<void>;
  /** The node runs the snapshot. Known at once; resolves once the fact is durable. */
  applied(record: ApplyHistoryRecord, stamp: Stamp, named: 'newest' | 'last_good', durationMs: number): Promise<void>;
}

export interface ApplyReportsDeps {
  readonly newest: NewestSnapshots;
  readonly lastGood: Pick<LastGoodSnapshots, 'keep'>;
  /** The newest generation of a node. */
  generation(nodeId: string): number | undefined;
  recordFact(nodeId: string, event: AgentEvent): Promise<void>;
  /** A report was ignored. */
  onIgnored(nodeId: string): void;
}

export function createApplyReports(deps: ApplyReportsDeps): ApplyReports {
  const record = async (entry: ApplyHistoryRecord, event: AgentEvent): Promise<void> => {
    entry.recorded = true;
    try {
      await deps.recordFact(entry.nodeId, event);
    } catch (error) {
      // The agent repeats its last report on its next session, and then it counts.
      entry.recorded = false;
      throw error;
    }
  };

  const applied = async (
    entry: ApplyHistoryRecord,
    stamp: Stamp,
    named: 'newest' | 'last_good',
    durationMs: number,
  ): Promise<void> => {
    const { history } = entry;
    const lastGood = named === 'newest' ? await keepNewest(entry, stamp) : stamp;
    const known =
      sameStamp(history.applied, stamp) && history.rejected.every((entry) => entry.generation > stamp.generation);
    entry.history = afterApply(entry.history, stamp, lastGood);
    if (known && entry.recorded) return;
    await record(entry, {
      type: 'AgentConfigApplied',
      data: { node_id: entry.nodeId, ...stamp, duration_ms: durationMs },
    });
  };

  const keepNewest = async (entry: ApplyHistoryRecord, stamp: Stamp): Promise<Stamp | undefined> => {
    if (sameStamp(entry.history.lastGood, stamp)) return stamp;
    const made = await deps.newest.get(entry.nodeId);
    // A newer one came between: what is kept stays.
    if (made.kind !== 'made' || !sameStamp(made.stamp, stamp)) return entry.history.lastGood;
    deps.lastGood.keep(entry.nodeId, made.value);
    return stamp;
  };

  const rejected = async (entry: ApplyHistoryRecord, stamp: Stamp, errors: readonly ApplyError[]): Promise<void> => {
    const known = hasRejected(entry.history, stamp);
    entry.history = afterReject(entry.history, stamp);
    if (known && entry.recorded) return;
    await record(entry, {
      type: 'AgentConfigRejected',
      data: { node_id: entry.nodeId, ...stamp, errors: errors.slice(0, limits.agent.applyErrors) },
    });
  };

  return {
    applied,
    async report(entry, outcome) {
      const generation = deps.generation(entry.nodeId);
      if (generation === undefined || outcome.generation > BigInt(generation)) return deps.onIgnored(entry.nodeId);
      const stamp: Stamp = {
        generation: Number(outcome.generation),
        checksum: Buffer.from(outcome.checksum).toString('hex'),
      };
      const newest = stamp.generation === generation ? await deps.newest.stamp(entry.nodeId) : undefined;
      const newestStamp = newest?.kind === 'made' ? newest.stamp : undefined;
      const named = snapshotNamed(stamp, newestStamp, entry.history.lastGood);
      if (named === undefined) return deps.onIgnored(entry.nodeId);
      if (outcome.status === 'rejected') return rejected(entry, stamp, outcome.errors);
      return applied(entry, stamp, named, outcome.durationMs);
    },
  };
}

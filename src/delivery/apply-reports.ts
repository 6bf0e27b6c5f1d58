/**
 * What agents say of the snapshots they were given: takes apply reports and the confirmations in ConfigRequests, keeps
 * what was applied, records facts once. A word about any snapshot but the newest and the kept one is counted and
 * ignored. Implements `docs/contract/agent-protocol.md#configuration` (reports, confirmation).
 */
import type { AgentEvent, ApplyError } from '../domain/agents/facts.js';
import { limits } from '../kernel/limits.js';
import type { KeptSnapshots } from './last-good.js';
import type { NewestSnapshots } from './newest.js';
import type { ApplyOutcome } from './port.js';
import type { StandingRecord } from './apply-history.js';
import type { Stamp } from './target.js';
import { afterApply, afterReject, hasRejected, sameStamp, snapshotNamed } from './target.js';

export interface Verdicts {
  /** Takes a report. Resolves once its fact is durable. @throws ServiceError `unavailable` */
  report(record: StandingRecord, outcome: ApplyOutcome): Promise<void>;
  /** The node runs the snapshot. Known at once; resolves once the fact is durable. */
  applied(record: StandingRecord, stamp: Stamp, named: 'newest' | 'kept', durationMs: number): Promise<void>;
}

export interface VerdictsDeps {
  readonly newest: NewestSnapshots;
  readonly kept: Pick<KeptSnapshots, 'keep'>;
  /** The newest generation of a node. */
  generation(nodeId: string): number | undefined;
  recordFact(nodeId: string, event: AgentEvent): Promise<void>;
  /** A report was ignored. */
  onIgnored(nodeId: string): void;
}

export function createVerdicts(deps: VerdictsDeps): Verdicts {
  const record = async (entry: StandingRecord, event: AgentEvent): Promise<void> => {
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
    entry: StandingRecord,
    stamp: Stamp,
    named: 'newest' | 'kept',
    durationMs: number,
  ): Promise<void> => {
    const { standing } = entry;
    const kept = named === 'newest' ? await keepNewest(entry, stamp) : stamp;
    const known =
      sameStamp(standing.applied, stamp) && standing.rejected.every((entry) => entry.generation > stamp.generation);
    entry.standing = afterApply(entry.standing, stamp, kept);
    if (known && entry.recorded) return;
    await record(entry, {
      type: 'AgentConfigApplied',
      data: { node_id: entry.nodeId, ...stamp, duration_ms: durationMs },
    });
  };

  const keepNewest = async (entry: StandingRecord, stamp: Stamp): Promise<Stamp | undefined> => {
    if (sameStamp(entry.standing.kept, stamp)) return stamp;
    const made = await deps.newest.get(entry.nodeId);
    // A newer one came between: what is kept stays.
    if (made.kind !== 'made' || !sameStamp(made.stamp, stamp)) return entry.standing.kept;
    deps.kept.keep(entry.nodeId, made.value);
    return stamp;
  };

  const rejected = async (entry: StandingRecord, stamp: Stamp, errors: readonly ApplyError[]): Promise<void> => {
    const known = hasRejected(entry.standing, stamp);
    entry.standing = afterReject(entry.standing, stamp);
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
      const named = snapshotNamed(stamp, newestStamp, entry.standing.kept);
      if (named === undefined) return deps.onIgnored(entry.nodeId);
      if (outcome.status === 'rejected') return rejected(entry, stamp, outcome.errors);
      return applied(entry, stamp, named, outcome.durationMs);
    },
  };
}

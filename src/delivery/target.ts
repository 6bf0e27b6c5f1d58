/**
 * Which snapshot a node should have, and what its requests and reports mean: pure rules, no bytes, no I/O.
 * Implements `docs/contract/agent-protocol.md#configuration` and `docs/contract/domain.md#generation`.
 */
import { limits } from '../kernel/limits.js';

/** Names one exact snapshot: another compiler or another log gives the same generation another checksum. */
export interface Stamp {
  readonly generation: number;
  /** Lower-case hex. */
  readonly checksum: string;
}

/** What is known about a node's applies, beside its newest snapshot. */
export interface ApplyHistory {
  /** The newest snapshot that it applied and whose exact bytes are stored. */
  readonly lastGood: Stamp | undefined;
  /** Snapshots that it rejected, without applying a later one since. Only the newest and the last-good one matter. */
  readonly rejected: readonly Stamp[];
  /** The rejected newest generation that this instance has sent once more. */
  readonly retried: number | undefined;
  /** What was recorded as applied last: a repeat is not recorded again. */
  readonly applied: Stamp | undefined;
}

/** @internal exported for tests */
export const emptyApplyHistory: ApplyHistory = {
  lastGood: undefined,
  rejected: [],
  retried: undefined,
  applied: undefined,
};

/** Rejected snapshots remembered per node. */
const maxRejected = 4;

export type Target =
  | 'newest'
  | 'last_good'
  /** The newest although it was rejected: once more, and only as an answer. */
  | 'newest_again'
  /** There is nothing that it has not rejected: it keeps what it runs. */
  | 'nothing';

export const sameStamp = (a: Stamp | undefined, b: Stamp | undefined): boolean =>
  a !== undefined && b !== undefined && a.generation === b.generation && a.checksum === b.checksum;

export const hasRejected = (history: ApplyHistory, stamp: Stamp): boolean =>
  history.rejected.some((entry) => sameStamp(entry, stamp));

/** The target of a node whose newest configuration is `newest`. */
export function targetOf(newest: Stamp, history: ApplyHistory): Target {
  if (!hasRejected(history, newest)) return 'newest';
  if (history.lastGood !== undefined && !hasRejected(history, history.lastGood)) return 'last_good';
  return history.retried === newest.generation ? 'nothing' : 'newest_again';
}

/**
 * The node runs the snapshot: its rejects of this snapshot and of earlier ones no longer count.
 * @param lastGood the node's last-good snapshot from now on: not `stamp` when its bytes could not be stored
 */
export function afterApply(history: ApplyHistory, stamp: Stamp, lastGood: Stamp | undefined): ApplyHistory {
  return {
    ...history,
    lastGood,
    applied: stamp,
    rejected: history.rejected.filter((entry) => entry.generation > stamp.generation),
  };
}

/** The node rejected the snapshot and still runs the one before. */
export function afterReject(history: ApplyHistory, stamp: Stamp): ApplyHistory {
  if (hasRejected(history, stamp)) return history;
  return { ...history, rejected: [...history.rejected, stamp].slice(-maxRejected) };
}

/** What a node's agent reported last, as the read models have it from the log. */
export interface RecordedApplyReports {
  readonly applied: Stamp | null;
  /** The last reject, until its generation or a later one is applied. */
  readonly rejected: Stamp | null;
  /** When an absurd version was reported; null once an apply is confirmed after it. */
  readonly version_conflict_at?: string | null;
}

/** A node's apply history when its session begins: what this instance remembers, what was recorded, what is stored. */
export function applyHistoryOf(
  remembered: ApplyHistory | undefined,
  recorded: RecordedApplyReports | undefined,
  lastGood: Stamp | undefined,
): ApplyHistory {
  const before = remembered ?? emptyApplyHistory;
  const applied = recorded?.applied ?? undefined;
  // The node may have been on another instance, or the record may lag behind what this instance has seen.
  const newer = applied !== undefined && applied.generation > (before.applied?.generation ?? 0);
  const history: ApplyHistory = {
    lastGood,
    retried: before.retried,
    applied: newer ? applied : before.applied,
    rejected: newer ? before.rejected.filter((entry) => entry.generation > applied.generation) : before.rejected,
  };
  return recorded?.rejected ? afterReject(history, recorded.rejected) : history;
}

/**
 * The node names the snapshot that it is recorded to have applied, and whose bytes are kept, at its newest generation: that
 * is its newest snapshot, without compiling and encoding it. It was recorded when it was compared with the newest one, and
 * no other is made of the same generation while log and compiler are the same. So a fleet that comes back after a restart
 * is served from its records.
 */
export const isRecordedNewest = (
  claimed: Stamp | undefined,
  { applied, lastGood }: ApplyHistory,
  generation: number,
): claimed is Stamp =>
  claimed?.generation === generation && sameStamp(claimed, applied) && sameStamp(claimed, lastGood);

/** How the version in a ConfigRequest relates to the node's generation, before its target is considered. */
export type VersionClaim =
  /** Above 2^53-1, or more than 2^32 ahead. */
  | 'absurd'
  /** Above the node's generation, which must be raised first. */
  | 'ahead'
  /** The node's generation: whether it is the same snapshot depends on the checksum. */
  | 'equal'
  /** Below the node's generation, or no configuration at all. */
  | 'behind';

export function versionClaim(configVersion: bigint, newestGeneration: number): VersionClaim {
  if (configVersion > BigInt(limits.fleet.generationMax)) return 'absurd';
  const ahead = configVersion - BigInt(newestGeneration);
  if (ahead > BigInt(limits.fleet.versionAheadMax)) return 'absurd';
  if (ahead > 0n) return 'ahead';
  return ahead === 0n ? 'equal' : 'behind';
}

/** Which snapshot a generation and a checksum name. Both must match: either alone names none. */
export function snapshotNamed(
  claimed: Stamp,
  newest: Stamp | undefined,
  lastGood: Stamp | undefined,
): 'newest' | 'last_good' | undefined {
  if (sameStamp(claimed, newest)) return 'newest';
  return sameStamp(claimed, lastGood) ? 'last_good' : undefined;
}

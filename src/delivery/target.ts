/**
 * Which configuration a node should have, and what its requests and reports mean: pure rules, no bytes, no I/O.
 * Implements `docs/contract/agent-protocol.md#configuration` ("Target", requests, reports) and the bounds of `NodeGenerationRaised`
 * (`docs/contract/domain.md#generation`).
 */
import { limits } from '../kernel/limits.js';

/** Names one exact snapshot: the same generation from another compiler or another log has another checksum. */
export interface Stamp {
  readonly generation: number;
  /** Lower-case hex. */
  readonly checksum: string;
}

/** What is known of a node beside its newest configuration. */
export interface ApplyHistory {
  /** The last generation it applied, whose exact bytes were kept. */
  readonly lastGood: Stamp | undefined;
  /** Snapshots that it rejected and has not outgrown since: its newest and the kept one at most matter. */
  readonly rejected: readonly Stamp[];
  /** The rejected newest generation that this instance has already sent once more. */
  readonly retried: number | undefined;
  /** What was last recorded as applied: a repeat is no second fact. */
  readonly applied: Stamp | undefined;
}

export const emptyApplyHistory: ApplyHistory = {
  lastGood: undefined,
  rejected: [],
  retried: undefined,
  applied: undefined,
};

/** ApplyReports remembered of one node. */
const maxRejected = 4;

export type Target =
  | 'newest'
  | 'last_good'
  /** The newest although rejected: once more, as an answer only. */
  | 'newest_again'
  /** Nothing that it has not rejected: it keeps what runs. */
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
 * The node runs the snapshot: verdicts on it and on earlier ones are outgrown.
 * @param kept what is kept of the node from now on; it stays as it was when the bytes applied could not be had
 */
export function afterApply(history: ApplyHistory, stamp: Stamp, lastGood: Stamp | undefined): ApplyHistory {
  return {
    ...history,
    lastGood,
    applied: stamp,
    rejected: history.rejected.filter((entry) => entry.generation > stamp.generation),
  };
}

/** The node refused the snapshot and goes on with what ran before. */
export function afterReject(history: ApplyHistory, stamp: Stamp): ApplyHistory {
  if (hasRejected(history, stamp)) return history;
  return { ...history, rejected: [...history.rejected, stamp].slice(-maxRejected) };
}

/** What the log says that a node's agent did last. */
export interface RecordedApplyReports {
  readonly applied: Stamp | null;
  /** Kept until an apply of its generation or a later one. */
  readonly rejected: Stamp | null;
  /** An absurd version was reported, and no apply confirmed since. */
  readonly version_conflict_at?: string | null;
}

/** What is known of a node when its session begins: what this instance remembers, what was recorded, what is kept. */
export function applyHistoryOf(
  remembered: ApplyHistory | undefined,
  recorded: RecordedApplyReports | undefined,
  lastGood: Stamp | undefined,
): ApplyHistory {
  const before = remembered ?? emptyApplyHistory;
  const applied = recorded?.applied ?? undefined;
  // The node may have been elsewhere, or the record may lag behind what this instance saw itself.
  const newer = applied !== undefined && applied.generation > (before.applied?.generation ?? 0);
  const history: ApplyHistory = {
    lastGood,
    retried: before.retried,
    applied: newer ? applied : before.applied,
    rejected: newer ? before.rejected.filter((entry) => entry.generation > applied.generation) : before.rejected,
  };
  return recorded?.rejected ? afterReject(history, recorded.rejected) : history;
}

/** What a ConfigRequest says of the version that it names, before the target is looked at. */
export type VersionClaim =
  /** Above 2^53-1, or more than 2^32 ahead. */
  | 'absurd'
  /** Above the node's generation: it must be raised first. */
  | 'ahead'
  /** The node's generation: only its checksum can tell. */
  | 'equal'
  /** Below it, or no configuration at all. */
  | 'behind';

export function versionClaim(configVersion: bigint, newestGeneration: number): VersionClaim {
  if (configVersion > BigInt(limits.fleet.generationMax)) return 'absurd';
  const ahead = configVersion - BigInt(newestGeneration);
  if (ahead > BigInt(limits.fleet.versionAheadMax)) return 'absurd';
  if (ahead > 0n) return 'ahead';
  return ahead === 0n ? 'equal' : 'behind';
}

/** Which snapshot a generation and checksum name; a checksum alone or a generation alone names none. */
export function snapshotNamed(
  claimed: Stamp,
  newest: Stamp | undefined,
  lastGood: Stamp | undefined,
): 'newest' | 'last_good' | undefined {
  if (sameStamp(claimed, newest)) return 'newest';
  return sameStamp(claimed, lastGood) ? 'last_good' : undefined;
}

/**
 * Which snapshot a node should have, and what its requests and reports mean: pure rules, no I/O.
 * Implements `docs/contract/agent-protocol.md#configuration`, `docs/contract/agent-protocol.md#control` (what one node can
 * write into the log) and `docs/contract/domain.md#generation`.
 */
import { createHash } from 'node:crypto';
import type { ApplyError } from '../domain/agents/facts.js';
import type { NodeAgentFacts } from '../domain/agents/node-agent-facts.js';
import { limits } from '../kernel/limits.js';
import type { SnapshotPush } from './port.js';

/** Names one exact snapshot: another compiler or another log gives the same generation another checksum. */
export interface Stamp {
  readonly generation: number;
  /** Lower-case hex. */
  readonly checksum: string;
}

/** The stamp of an encoded snapshot. */
export function stampOf({ generation, checksum }: Pick<SnapshotPush, 'generation' | 'checksum'>): Stamp {
  return { generation, checksum: Buffer.from(checksum).toString('hex') };
}

/** A snapshot that a node rejected, as it did last. */
export interface Reject extends Stamp {
  /** The session that reported it; undefined when this instance has it from the log. */
  readonly sessionId: string | undefined;
  /** A digest of its errors. */
  readonly errors: string;
}

/** Knowledge about a node's applies, beside its newest snapshot. */
export interface ApplyHistory {
  /** The newest snapshot that it applied and whose exact bytes are stored. */
  readonly lastGood: Stamp | undefined;
  /** Snapshots that it rejected, without applying it or a later one since. Only the newest and the last-good one matter. */
  readonly rejected: readonly Reject[];
  /** The apply that was recorded last: a repeat is not recorded again. */
  readonly applied: Stamp | undefined;
  /** A reject was recorded after it, so the next apply is no repeat. */
  readonly rejectedSince: boolean;
}

/** @internal exported for tests */
export const emptyApplyHistory: ApplyHistory = {
  lastGood: undefined,
  rejected: [],
  applied: undefined,
  rejectedSince: false,
};

/** Rejected snapshots remembered per node. */
const maxRejected = 4;

export type Target = 'newest' | 'last_good';

export const sameStamp = (a: Stamp | undefined, b: Stamp | undefined): boolean =>
  a !== undefined && b !== undefined && a.generation === b.generation && a.checksum === b.checksum;

/** The node's reject of the snapshot, if it has not applied it since. */
export const rejectOf = (history: ApplyHistory, stamp: Stamp): Reject | undefined =>
  history.rejected.find((entry) => sameStamp(entry, stamp));

/**
 * The target of a node whose newest configuration is `newest`.
 * @param again the rejected generation that is due to be tried again, if any
 */
export function targetOf(newest: Stamp, history: ApplyHistory, again?: number): Target {
  if (again === newest.generation || rejectOf(history, newest) === undefined) return 'newest';
  const { lastGood } = history;
  // No snapshot is left that it has not rejected, so it is offered the newest, which it should run.
  return lastGood !== undefined && rejectOf(history, lastGood) === undefined ? 'last_good' : 'newest';
}

/** The node runs the snapshot: its rejects of this snapshot and of earlier ones no longer count. */
export function afterApply(history: ApplyHistory, stamp: Stamp): ApplyHistory {
  return {
    ...history,
    applied: stamp,
    rejectedSince: false,
    rejected: history.rejected.filter((entry) => entry.generation > stamp.generation),
  };
}

/** The node rejected the snapshot and still runs the one before. @param isRepeat it is not recorded again */
export function afterReject(history: ApplyHistory, reject: Reject, isRepeat = false): ApplyHistory {
  const others = history.rejected.filter((entry) => !sameStamp(entry, reject));
  return {
    ...history,
    rejected: [...others, reject].slice(-maxRejected),
    rejectedSince: history.rejectedSince || !isRepeat,
  };
}

/** The last reports of a node's agent, as the read models have them from the log. */
export type RecordedApplyReports = Pick<NodeAgentFacts, 'applied' | 'rejected' | 'version_conflict_at'>;

/** A node's apply history as the log has it. */
export function applyHistoryOf({ applied, rejected }: RecordedApplyReports, lastGood: Stamp | undefined): ApplyHistory {
  const stamp = ({ generation, checksum }: Stamp): Stamp => ({ generation, checksum });
  return {
    ...emptyApplyHistory,
    lastGood,
    applied: applied === null ? undefined : stamp(applied),
    rejected:
      rejected === null ? [] : [{ ...stamp(rejected), sessionId: undefined, errors: errorsDigest(rejected.errors) }],
    rejectedSince: rejected !== null && rejected.applied_since !== true,
  };
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

/** @param errors as reported; their strings are bounded by the protocol */
export function recordedErrors(errors: readonly ApplyError[]): readonly ApplyError[] {
  let bytes = 0;
  const end = errors.findIndex((error) => {
    bytes += Buffer.byteLength(JSON.stringify(error)) + 1;
    return bytes > limits.agent.recordedErrorBytes;
  });
  if (end === -1) return errors;
  const omitted = errors.length - end;
  const message = `${omitted} more ${omitted === 1 ? 'error is' : 'errors are'} left out: only ${limits.agent.recordedErrorBytes} bytes of them are recorded`;
  return [...errors.slice(0, end), { resource_type: '', resource_id: '', path: '', message }];
}

/** Tells whether two rejects object to the same, without keeping their errors. @param errors as they are recorded */
export function errorsDigest(errors: readonly ApplyError[]): string {
  const texts = errors.map(({ resource_type, resource_id, path, message }) => [
    resource_type,
    resource_id,
    path,
    message,
  ]);
  return createHash('sha256').update(JSON.stringify(texts)).digest('base64');
}

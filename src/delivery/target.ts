/**
 * Which snapshot a node should have, and what its requests and reports mean: pure rules, no I/O.
 * Implements `docs/contract/agent-protocol.md#configuration`, `docs/contract/agent-protocol.md#control` (what one node can
 * write into the log) and `docs/contract/domain.md#generation`.
 */
import { createHash } from 'node:crypto';
import type { ApplyError } from '../domain/agents/facts.js';
import type { NodeAgentFacts } from '../domain/agents/node-agent-facts.js';
import type { NodeNeed } from '../domain/confirmation/confirmation.js';
import { limits } from '../kernel/limits.js';
import type { SnapshotPush } from './port.js';

/** Identifies one exact snapshot: with another compiler or log, the same generation has another checksum. */
export interface Stamp {
  readonly generation: number;
  /** Lower-case hex. */
  readonly checksum: string;
}

export function stampOf({ generation, checksum }: Pick<SnapshotPush, 'generation' | 'checksum'>): Stamp {
  return { generation, checksum: Buffer.from(checksum).toString('hex') };
}

/** A node's last reject of a snapshot. */
export interface Reject extends Stamp {
  /** The session that reported it; undefined if it is known from the log. */
  readonly sessionId: string | undefined;
  /** A digest of its errors. */
  readonly errors: string;
  /** The agent went back because nobody confirmed it: it is not retried automatically. */
  readonly unconfirmed?: true;
}

export interface ApplyHistory {
  /** The newest applied snapshot whose exact bytes are stored. */
  readonly lastGood: Stamp | undefined;
  /** Snapshots that it rejected without applying them or later ones since. Only the newest and the last-good one matter. */
  readonly rejected: readonly Reject[];
  /** The last recorded apply; a repeat is not recorded again. */
  readonly applied: Stamp | undefined;
  /** A reject was recorded after it, so the next apply is not a repeat. */
  readonly rejectedSince: boolean;
  /** The highest confirmed generation; 0 for none. */
  readonly confirmed: number;
}

/** @internal exported for tests */
export const emptyApplyHistory: ApplyHistory = {
  lastGood: undefined,
  rejected: [],
  applied: undefined,
  rejectedSince: false,
  confirmed: 0,
};

/** Rejected snapshots remembered per node. */
const maxRejected = 4;

export type Target = 'newest' | 'last_good';

export const sameStamp = (a: Stamp | undefined, b: Stamp | undefined): boolean =>
  a !== undefined && b !== undefined && a.generation === b.generation && a.checksum === b.checksum;

export const rejectOf = (history: ApplyHistory, stamp: Stamp): Reject | undefined =>
  history.rejected.find((entry) => sameStamp(entry, stamp));

/** How a node that waits for its wave of a rollout is held. */
export type Hold =
  | 'none'
  /** Its target is the last-good snapshot, which is the last one that it applied. */
  | 'kept'
  /** The bytes of its last applied snapshot are gone: it keeps that, and gets the newest once it asks with another. */
  | 'bytes_gone';

/** Implements `docs/contract/rollouts.md#hold`. @param waits the node's wave is not released */
export function holdOf(waits: boolean, history: ApplyHistory): Hold {
  const { applied, lastGood } = history;
  if (!waits || applied === undefined || rejectOf(history, applied) !== undefined) return 'none';
  return sameStamp(applied, lastGood) ? 'kept' : 'bytes_gone';
}

/** The target of a node. @param again the rejected generation that is due for a retry */
export function targetOf(newest: Stamp, history: ApplyHistory, again?: number): Target {
  if (again === newest.generation || rejectOf(history, newest) === undefined) return 'newest';
  const { lastGood } = history;
  // If it has rejected both, it is offered the newest.
  return lastGood !== undefined && rejectOf(history, lastGood) === undefined ? 'last_good' : 'newest';
}

/** The seconds that go with a snapshot when it is sent; undefined for none. Implements `docs/contract/rollouts.md#confirmed-changes`. */
export function confirmWithin(
  need: NodeNeed | undefined,
  { confirmed }: Pick<ApplyHistory, 'confirmed'>,
  generation: number,
): number | undefined {
  if (need === undefined || confirmed >= need.generation || generation < need.generation) return undefined;
  return need.secs;
}

/** The node runs the snapshot: rejects of this one and earlier ones no longer count. */
export function afterApply(history: ApplyHistory, stamp: Stamp): ApplyHistory {
  return {
    ...history,
    applied: stamp,
    rejectedSince: false,
    rejected: history.rejected.filter((entry) => entry.generation > stamp.generation),
  };
}

/** The node rejected the snapshot. @param isRepeat the reject is not recorded again */
export function afterReject(history: ApplyHistory, reject: Reject, isRepeat = false): ApplyHistory {
  const others = history.rejected.filter((entry) => !sameStamp(entry, reject));
  return {
    ...history,
    rejected: [...others, reject].slice(-maxRejected),
    rejectedSince: history.rejectedSince || !isRepeat,
  };
}

/** The last recorded reports of a node's agent. */
export type RecordedApplyReports = Pick<NodeAgentFacts, 'applied' | 'rejected' | 'confirmed' | 'version_conflict_at'>;

/** A node's apply history according to the log. */
export function applyHistoryOf(
  { applied, rejected, confirmed }: RecordedApplyReports,
  lastGood: Stamp | undefined,
): ApplyHistory {
  const stamp = ({ generation, checksum }: Stamp): Stamp => ({ generation, checksum });
  return {
    ...emptyApplyHistory,
    lastGood,
    applied: applied === null ? undefined : stamp(applied),
    rejected: rejected === null ? [] : [{ ...stamp(rejected), sessionId: undefined, ...judgedErrors(rejected.errors) }],
    rejectedSince: rejected !== null && rejected.applied_since !== true,
    confirmed: confirmed?.generation ?? 0,
  };
}

/**
 * Whether the claimed snapshot is the newest one, without compiling it: it has the newest generation, is recorded as applied,
 * and its bytes are stored. It was compared with the newest one when it was recorded, and the same log and compiler always
 * make the same snapshot. So a fleet that comes back after a restart is served from records.
 */
export const isRecordedNewest = (
  claimed: Stamp | undefined,
  { applied, lastGood }: ApplyHistory,
  generation: number,
): claimed is Stamp =>
  claimed?.generation === generation && sameStamp(claimed, applied) && sameStamp(claimed, lastGood);

/** How the version in a ConfigRequest relates to the node's generation. */
export type VersionClaim =
  /** Above 2^53-1, or more than 2^32 ahead. */
  | 'absurd'
  /** Above the node's generation, which must be raised first. */
  | 'ahead'
  /** The node's generation; the checksum decides whether it is the same snapshot. */
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

/** The snapshots that a node may be running. */
export interface Known {
  readonly newest: Stamp | undefined;
  readonly lastGood: Stamp | undefined;
  /** The snapshot that a held node was sent before it was held, and has not reported on. */
  readonly pushed: SnapshotPush | undefined;
}

export type Named = 'newest' | 'last_good' | 'pushed';

/** Which snapshot is claimed. Generation and checksum must both match. */
export function snapshotNamed(claimed: Stamp, { newest, lastGood, pushed }: Known): Named | undefined {
  if (sameStamp(claimed, newest)) return 'newest';
  if (sameStamp(claimed, lastGood)) return 'last_good';
  return pushed !== undefined && sameStamp(claimed, stampOf(pushed)) ? 'pushed' : undefined;
}

/** The errors up to the limit for recording, with a note of how many are omitted. */
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

/** The part of its errors that a reject keeps. @param errors as recorded */
export function judgedErrors(errors: readonly ApplyError[]): Pick<Reject, 'errors' | 'unconfirmed'> {
  const unconfirmed = errors.some(({ path, message }) => path === '' && /^not confirmed in \d+ s$/.test(message));
  return { errors: errorsDigest(errors), ...(unconfirmed ? { unconfirmed } : {}) };
}

/** Compares rejects without keeping their errors. @param errors as recorded @internal exported for tests */
export function errorsDigest(errors: readonly ApplyError[]): string {
  const texts = errors.map(({ resource_type, resource_id, path, message }) => [
    resource_type,
    resource_id,
    path,
    message,
  ]);
  return createHash('sha256').update(JSON.stringify(texts)).digest('base64');
}

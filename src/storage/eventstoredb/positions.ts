/** Positions and revisions: 64-bit on the wire, numbers here. Numbers from 2^53 on (9 PB of log) are refused. */
import type { Position } from '@eventstore/db-client';
import type { ResumePoint } from '../event-store.js';

/** @throws RangeError from 2^53 on, where two positions would become the same number */
export function toNumber(value: bigint): number {
  if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw new RangeError(`the log's position ${value} is 2^53 or more`);
  return Number(value);
}

/** "No position", -1 on the server: what some servers report as a checkpoint before the first event that matches. */
const nowhere = 2n ** 64n - 1n;

/** @returns undefined for a checkpoint at no position, which says nothing @throws RangeError from 2^53 on */
export function toResumePoint({ commit, prepare }: Position): ResumePoint | undefined {
  if (commit === nowhere && prepare === nowhere) return undefined;
  return { commit: toNumber(commit), prepare: toNumber(prepare) };
}

/** Keeps both halves: a checkpoint (commit, 0) must be sent back unchanged (`passedBy` says what it means). */
export const toPosition = ({ commit, prepare }: ResumePoint): Position => ({
  commit: BigInt(commit),
  prepare: BigInt(prepare),
});

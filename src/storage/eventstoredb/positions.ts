/** Positions and revisions: 64-bit on the wire, numbers here. Numbers from 2^53 on (9 PB of log) are refused. */
import type { Position } from '@eventstore/db-client';
import type { ResumePoint } from '../event-store.js';

/** @throws RangeError from 2^53 on, where two positions would become the same number */
export function toNumber(value: bigint): number {
  if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw new RangeError(`the log's position ${value} is 2^53 or more`);
  return Number(value);
}

export const toResumePoint = ({ commit, prepare }: Position): ResumePoint => ({
  commit: toNumber(commit),
  prepare: toNumber(prepare),
});

/** Keeps both halves: the checkpoint of a page without a match is (commit, 0) and must be sent back unchanged. */
export const toPosition = ({ commit, prepare }: ResumePoint): Position => ({
  commit: BigInt(commit),
  prepare: BigInt(prepare),
});

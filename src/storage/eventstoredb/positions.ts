/** Positions and revisions: 64-bit on the wire, numbers in the program. Nine petabytes of log fit; more is refused. */
import type { Position } from '@eventstore/db-client';
import type { ResumePoint } from '../event-store.js';

/** @throws RangeError from 2^53 on: two positions must never become one */
export function toNumber(value: bigint): number {
  if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw new RangeError(`the log's position ${value} is 2^53 or more`);
  return Number(value);
}

export const toResumePoint = ({ commit, prepare }: Position): ResumePoint => ({
  commit: toNumber(commit),
  prepare: toNumber(prepare),
});

/** Both halves: a checkpoint of a page without a match is (commit, 0) and must be given back so. */
export const toPosition = ({ commit, prepare }: ResumePoint): Position => ({
  commit: BigInt(commit),
  prepare: BigInt(prepare),
});

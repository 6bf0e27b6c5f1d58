/**
 * Which configuration an agent goes back to, and when: the fold of what it applied and what the service confirmed. Pure.
 * `applier.ts` goes back. Implements `docs/contract/rollouts.md#confirmed-changes`.
 */
import type { RuntimeConfigSnapshot } from '../../gen/svc/control/v1/config.js';

/** A configuration that runs until `due` at most, unless it is confirmed. */
export interface Waiting {
  readonly generation: bigint;
  readonly checksum: Buffer;
  /** The time that the service gave it, in seconds. */
  readonly secs: number;
  /** Monotonic milliseconds. */
  readonly due: number;
  /** Undefined after a restart, until it is applied again. */
  readonly snapshot: RuntimeConfigSnapshot | undefined;
}

export interface Confirming {
  /** The last configuration that was confirmed or needed no confirmation; without it, the agent never goes back. */
  readonly last: RuntimeConfigSnapshot | undefined;
  readonly waiting: Waiting | undefined;
}

export const nothingKept: Confirming = { last: undefined, waiting: undefined };

type Stamped = Pick<RuntimeConfigSnapshot, 'generation' | 'checksum'>;

const isSame = (a: Stamped, b: Stamped | undefined): boolean =>
  a.generation === b?.generation && a.checksum.equals(b.checksum);

/** @param now monotonic milliseconds */
export function afterApplied(state: Confirming, snapshot: RuntimeConfigSnapshot, now: number): Confirming {
  const { generation, checksum, confirmWithinSecs: secs } = snapshot;
  // A generation that was confirmed once needs no second confirmation.
  if (secs === undefined || isSame(snapshot, state.last)) return { last: snapshot, waiting: undefined };
  // The same snapshot again, perhaps after a restart: its time keeps running.
  const due = isSame(snapshot, state.waiting) ? (state.waiting?.due ?? now) : now + secs * 1_000;
  return { last: state.last, waiting: { generation, checksum: Buffer.from(checksum), secs, due, snapshot } };
}

/** A confirmation of any generation but the waiting one changes nothing. */
export function afterConfirmed(state: Confirming, generation: bigint): Confirming {
  const { waiting } = state;
  if (waiting?.generation !== generation || waiting.snapshot === undefined) return state;
  return { last: waiting.snapshot, waiting: undefined };
}

export const afterGoingBack = ({ last }: Confirming): Confirming => ({ last, waiting: undefined });

/** When it goes back, monotonic milliseconds; undefined for never. */
export const goesBackAt = ({ last, waiting }: Confirming): number | undefined =>
  last === undefined ? undefined : waiting?.due;

/**
 * Decides to apply a document, or a part of it, as one command: refused if anything has changed since the comparison, or if
 * anything is in the way. Implements `docs/contract/automation.md#the-fleet-as-a-file`, "Atomic".
 */
import type { Fleet } from '../fleet/fleet.js';
import { draftAfter } from '../fleet/hypothetical.js';
import type { FleetEvent } from '../fleet/resources.js';
import type { FleetApplied } from '../fleet-set/declaration.js';
import { forEach } from '../../kernel/pieces.js';
import { ok } from '../../kernel/result.js';
import { refuse, type Decision } from '../resource/refusal.js';
import type { ResourceMeta } from '../resource/meta.js';
import { presentBase } from './base.js';
import { carryOut } from './carry-out.js';
import type { Change, Comparison } from './compare.js';

export interface ApplyDocument {
  readonly type: 'ApplyDocument';
  /** The first command of an apply finds `former` and `left`; later ones receive them. */
  readonly applied: FleetApplied['data'];
  readonly changes: readonly Change[];
  readonly versions: Comparison['versions'];
}

export const changedMeanwhile = 'the fleet has changed meanwhile; plan again';

function withFormer(fleet: Fleet, applied: FleetApplied['data']): FleetApplied['data'] {
  if (applied.former !== undefined) return applied;
  const { base: former, left } = presentBase(fleet, applied.name);
  return { ...applied, former, ...(left === undefined ? {} : { left }) };
}

const versionsPerPiece = 2_500;

/** Yields between two pieces. */
export function* decideApply(
  fleet: Fleet,
  { applied, changes, versions }: ApplyDocument,
): Generator<void, Decision<FleetEvent>> {
  let isChanged = false;
  yield* forEach(versions, versionsPerPiece, ([type, id, version]) => {
    isChanged ||= fleet.get<ResourceMeta>({ type }, id)?.version !== version;
  });
  if (isChanged) return refuse('precondition_failed', changedMeanwhile);
  const first: FleetApplied = { type: 'FleetApplied', data: withFormer(fleet, applied) };
  // Numbers that are assigned depend on the revision of their event, so the steps follow the first event.
  const { steps, mistakes, obstacles } = yield* carryOut(draftAfter(fleet, [first]), changes);
  if (mistakes.length + obstacles.length > 0) {
    return refuse('conflict', [...obstacles, ...mistakes.map(({ message }) => message)].slice(0, 50).join('; '));
  }
  return ok([first, ...steps.flatMap(({ events }) => events)]);
}

/**
 * The decision to let go of a set: its resources stay as they are and belong to no set, and its drift has no base any more.
 * Implements `docs/contract/automation.md#the-fleet-as-a-file`, release.
 */
import { applyCommand } from '../fleet/apply.js';
import { decideFleet } from '../fleet/decide.js';
import type { Fleet } from '../fleet/fleet.js';
import { draftFleet } from '../fleet/fleet.js';
import { hypothetical } from '../fleet/hypothetical.js';
import type { AnyState, FleetEvent } from '../fleet/resources.js';
import { resourceTypes } from '../fleet/resources.js';
import type { FleetBaseMoved } from '../fleet-set/declaration.js';
import type { Owner } from '../references/references.js';
import { ownerOf, splitOwner } from '../references/references.js';
import { ok } from '../../kernel/result.js';
import type { Decision } from '../resource/refusal.js';
import { presentBase } from './base.js';
import { ownerChange } from './compare.js';

export interface ReleaseSet {
  readonly type: 'ReleaseSet';
  /** Stands for the release in the audit. */
  readonly releaseId: string;
  readonly set: string;
  /** Of its resources, as many as one command may hold. */
  readonly owners: readonly Owner[];
}

/** The resources of a set. */
export function ownersIn(fleet: Fleet, set: string): readonly Owner[] {
  return resourceTypes.flatMap((type) =>
    ([...fleet.tables[type].values()] as unknown as AnyState[])
      .filter(({ managed_by }) => managed_by === set)
      .map(({ id }) => ownerOf(type, id)),
  );
}

/** So many resources are let go of at a time. */
const perPiece = 25;

/** Yields between two pieces. */
export function* decideRelease(
  fleet: Fleet,
  { releaseId, set, owners }: ReleaseSet,
): Generator<void, Decision<FleetEvent>> {
  const { base: from, left } = presentBase(fleet, set);
  const first: FleetBaseMoved = {
    type: 'FleetBaseMoved',
    data: {
      apply_id: releaseId,
      name: set,
      base: { from, to: null },
      ...(left === undefined ? {} : { left }),
      applied: {},
    },
  };
  const { state: draft } = draftFleet(fleet);
  applyCommand(draft, hypothetical(draft, [first]));
  const events: FleetEvent[] = [first];
  for (const [index, owner] of owners.entries()) {
    if (index > 0 && index % perPiece === 0) yield;
    const { type, id } = splitOwner(owner);
    const state = draft.get<AnyState>({ type }, id);
    if (state?.managed_by !== set) continue;
    const decision = decideFleet(draft, ownerChange(type, state, null));
    if (!decision.ok) return decision;
    applyCommand(draft, hypothetical(draft, decision.value));
    events.push(...decision.value);
  }
  return ok(events);
}

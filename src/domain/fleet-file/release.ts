/**
 * Decides to release a set: its resources stay as they are, belong to no set, and its drift no longer has a base.
 * Implements `docs/contract/automation.md#the-fleet-as-a-file`, release.
 */
import { applyCommand } from '../fleet/apply.js';
import { decideFleet } from '../fleet/decide.js';
import type { Fleet } from '../fleet/fleet.js';
import { draftAfter, hypothetical } from '../fleet/hypothetical.js';
import type { AnyState, FleetEvent } from '../fleet/resources.js';
import type { FleetBaseMoved } from '../fleet-set/declaration.js';
import { splitOwner, type Owner } from '../references/references.js';
import { ok } from '../../kernel/result.js';
import type { Decision } from '../resource/refusal.js';
import { presentBase } from './base.js';
import { ownerChange } from './owned.js';

export interface ReleaseSet {
  readonly type: 'ReleaseSet';
  /** Identifies the release in the audit. */
  readonly releaseId: string;
  readonly set: string;
  /** As many of its resources as one command may hold. */
  readonly owners: readonly Owner[];
}

const resourcesPerPiece = 25;

/** Yields between two pieces. */
export function* decideRelease(
  fleet: Fleet,
  { releaseId: apply_id, set: name, owners }: ReleaseSet,
): Generator<void, Decision<FleetEvent>> {
  const { base: from, left } = presentBase(fleet, name);
  const data = { apply_id, name, base: { from, to: null }, ...(left === undefined ? {} : { left }), applied: {} };
  const first: FleetBaseMoved = { type: 'FleetBaseMoved', data };
  const draft = draftAfter(fleet, [first]);
  const events: FleetEvent[] = [first];
  for (const [index, owner] of owners.entries()) {
    if (index > 0 && index % resourcesPerPiece === 0) yield;
    const { type, id } = splitOwner(owner);
    const state = draft.get<AnyState>({ type }, id);
    if (state?.managed_by !== name) continue;
    const decision = decideFleet(draft, ownerChange(type, state, null));
    if (!decision.ok) return decision;
    applyCommand(draft, hypothetical(draft, decision.value));
    events.push(...decision.value);
  }
  return ok(events);
}

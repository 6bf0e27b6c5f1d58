/** The resources that a set owns, and the change of an owner. Implements `docs/contract/automation.md#the-fleet-as-a-file`. */
import type { Fleet } from '../fleet/fleet.js';
import { commandOn, resourceTypes, type AnyState, type FleetCommand, type ResourceType } from '../fleet/resources.js';
import { policyFields, policyKey, type PolicyState } from '../listener-policy/policy.js';
import { ownerOf, type Owner } from '../references/references.js';
import { pick } from '../resource/lifecycle.js';

/** Gives a resource another owner; null for none. */
export function ownerChange(type: string, state: AnyState, managed_by: string | null): FleetCommand {
  if (type !== policyKey.type) {
    return commandOn('Update', type as ResourceType, { id: state.id, ifMatch: undefined, managed_by });
  }
  const policy = pick(state as PolicyState, policyFields);
  return { type: 'SaveListenerPolicy', ifMatch: undefined, ...policy, managed_by };
}

export function statesIn(fleet: Fleet, type: ResourceType, set: string): AnyState[] {
  return [...(fleet.tables[type].values() as Iterable<AnyState>)].filter(({ managed_by }) => managed_by === set);
}

/** The resources of a set; none for null. */
export function ownersIn(fleet: Fleet, set: string | null): readonly Owner[] {
  if (set === null) return [];
  return resourceTypes.flatMap((type) => statesIn(fleet, type, set).map(({ id }) => ownerOf(type, id)));
}

/**
 * The base of a set's drift as it moves: what the event that begins an apply, its revert or a release says of it, so that a
 * revert finds the base as it was. What a base left is known only where the fleet is otherwise, and an event carries just that.
 * Implements `docs/contract/automation.md#the-fleet-as-a-file`, drift and "the revert of an apply".
 */
import { describedFields, settingsOwner } from '../fleet/apply.js';
import type { Fleet } from '../fleet/fleet.js';
import type { AnyState, ResourceType } from '../fleet/resources.js';
import type { DriftBase, FleetBaseMoved, FleetSetEvent, Lefts } from '../fleet-set/declaration.js';
import { baseOf } from '../fleet-set/declaration.js';
import { differs, fieldIn, leftOf } from '../fleet-set/left-by-apply.js';
import { splitOwner } from '../references/references.js';
import { fieldsOfSettings } from '../settings/evolve.js';
import type { RecordedEvent } from '../../kernel/event.js';
import type { JsonObject } from '../../kernel/json.js';

/** So many bytes of what a base left are carried: with more of it, a revert leaves the set without a base. */
export const carriedBytes = 32 * 1024;

/** The base that a set has, with what it left; without a base when that is too much to carry. */
export function presentBase(
  fleet: Fleet,
  set: string | null,
): { readonly base: DriftBase | null; readonly left?: Lefts } {
  const base = baseOf(fleet.singletons.fleet.value, set) ?? null;
  if (base === null || set === null) return { base };
  const left: Record<string, JsonObject | null> = {};
  for (const { owner, state } of leftOf(fleet.left, set)) {
    const { type, id } = splitOwner(owner);
    const isSettings = owner === settingsOwner;
    const now = isSettings ? fieldsOfSettings(fleet.singletons.connectivity.value) : fleet.get<AnyState>({ type }, id);
    const fields = isSettings ? (base.settings ?? []) : describedFields(type as ResourceType);
    if (!differs(state, now, fields)) continue;
    const carried = [...fields, 'version'].map((field) => [field, fieldIn(state, field)] as const);
    left[owner] = state === null ? null : Object.fromEntries(carried);
  }
  return Buffer.byteLength(JSON.stringify(left)) <= carriedBytes ? { base, left } : { base: null };
}

/** The base of a set when an entry is taken back. */
interface Back {
  readonly to: DriftBase | null;
  /** What `to` had left where the fleet was otherwise before the entry; undefined when the base stays as it is. */
  readonly left?: Lefts;
}

function back(first: RecordedEvent, now: DriftBase | null): Back {
  const event = first as unknown as FleetSetEvent;
  const { apply_id } = event.data;
  if (event.type === 'FleetApplied') {
    const { former = null, left = {} } = event.data;
    if (now?.apply_id === apply_id) return { to: former, left };
    // Another command of the same apply has been taken back before.
    return former !== null && now?.apply_id === former.apply_id ? { to: now, left } : { to: now };
  }
  const { base, left = {} } = event.data;
  const moved = base.from?.apply_id !== base.to?.apply_id;
  if (moved && now?.apply_id === base.to?.apply_id) return { to: base.from, left };
  return now !== null && now.apply_id === apply_id ? { to: now, left: {} } : { to: now };
}

/** The event that begins the revert of an entry. */
export function baseBack(fleet: Fleet, first: RecordedEvent): FleetBaseMoved {
  const { apply_id, name } = (first as unknown as FleetSetEvent).data;
  const { base: from, left } = presentBase(fleet, name);
  const { to, left: former } = back(first, baseOf(fleet.singletons.fleet.value, name) ?? null);
  return {
    type: 'FleetBaseMoved',
    data: {
      apply_id,
      name,
      base: { from, to },
      ...(left === undefined ? {} : { left }),
      ...(former === undefined ? {} : { applied: former }),
    },
  };
}

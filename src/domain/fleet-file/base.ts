/**
 * How the base of a set's drift moves. The event that begins an apply, its revert or a release records the base and, where
 * the fleet differed from it, what the base had left, so that a revert restores both. Implements
 * `docs/contract/automation.md#the-fleet-as-a-file`, drift and "the revert of an apply".
 */
import { describedFields, presentState } from '../fleet/apply.js';
import type { Fleet } from '../fleet/fleet.js';
import type { ResourceType } from '../fleet/resources.js';
import { baseOf, setEvent, type DriftBase, type FleetBaseMoved, type Lefts } from '../fleet-set/declaration.js';
import { differs, fieldIn, leftOf, settingsOwner } from '../fleet-set/left-by-apply.js';
import { splitOwner } from '../references/references.js';
import type { RecordedEvent } from '../../kernel/event.js';
import type { JsonObject } from '../../kernel/json.js';

/** The maximum size of `left` in an event, in bytes. Above it, a revert leaves the set without a base. */
export const carriedBytes = 32 * 1024;

/** The base of a set, and what it had left; no base when that is too much to carry. */
export function presentBase(
  fleet: Fleet,
  set: string | null,
): { readonly base: DriftBase | null; readonly left?: Lefts } {
  const base = baseOf(fleet.singletons.fleet.value, set) ?? null;
  if (set === null) return { base };
  const left: Record<string, JsonObject | null> = {};
  for (const { owner, state } of leftOf(fleet.left, set)) {
    const fields =
      owner === settingsOwner ? (base?.settings ?? []) : describedFields(splitOwner(owner).type as ResourceType);
    if (!differs(state, presentState(fleet, owner), fields)) continue;
    const carried = [...fields, 'version'].map((field) => [field, fieldIn(state, field)] as const);
    left[owner] = state === null ? null : Object.fromEntries(carried);
  }
  if (base === null && Object.keys(left).length === 0) return { base };
  return Buffer.byteLength(JSON.stringify(left)) <= carriedBytes ? { base, left } : { base: null };
}

/** The base of a set after the revert of an entry. */
interface RestoredBase {
  readonly to: DriftBase | null;
  /** What `to` had left where the fleet differed before the entry; undefined when the base stays. */
  readonly left?: Lefts;
}

function restoredBase(first: RecordedEvent, now: DriftBase | null): RestoredBase {
  const event = setEvent(first);
  const { apply_id } = event.data;
  if (event.type === 'FleetApplied') {
    const { former = null, left = {} } = event.data;
    if (now?.apply_id === apply_id) return { to: former, left };
    // Another command of the same apply was reverted before.
    return former !== null && now?.apply_id === former.apply_id ? { to: now, left } : { to: now };
  }
  const { base, left = {}, applied } = event.data;
  const moved = base.from?.apply_id !== base.to?.apply_id;
  if (moved && now?.apply_id === base.to?.apply_id) return { to: base.from, left };
  // A later command of a release, whose first one moved the base.
  if (now === null && base.to === null && applied !== undefined) return { to: now, left };
  return now !== null && now.apply_id === apply_id ? { to: now, left: {} } : { to: now };
}

/** The event that begins the revert of an entry. */
export function baseRestored(fleet: Fleet, first: RecordedEvent): FleetBaseMoved {
  const { apply_id, name } = setEvent(first).data;
  const { base: from, left } = presentBase(fleet, name);
  const { to, left: former } = restoredBase(first, baseOf(fleet.singletons.fleet.value, name) ?? null);
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

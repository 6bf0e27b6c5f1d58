/**
 * The base of a set's drift as it moves: what the event that begins an apply, its revert or a release says of it, so that a
 * revert finds the base as it was. What a base left is known only where the fleet is otherwise, and an event carries just that.
 * Implements `docs/contract/automation.md#the-fleet-as-a-file`, drift and "the revert of an apply".
 */
import { describedFields, settingsOwner } from '../fleet/apply.js';
import type { Fleet } from '../fleet/fleet.js';
import type { AnyState, ResourceType } from '../fleet/resources.js';
import { resourceOf } from '../fleet/resources.js';
import type { DriftBase, FleetBaseMoved, FleetSetEvent, Lefts } from '../fleet-set/declaration.js';
import { baseOf, fleetSetType } from '../fleet-set/declaration.js';
import { differs, fieldIn, leftOf } from '../fleet-set/left-by-apply.js';
import { evolveLabels, isLabelField } from '../node/labels.js';
import type { Labels } from '../node/node.js';
import type { Owner } from '../references/references.js';
import { ownerOf, splitOwner } from '../references/references.js';
import { undoOf } from '../revert/history.js';
import { fieldsOfSettings } from '../settings/evolve.js';
import type { RecordedCommand, RecordedEvent } from '../../kernel/event.js';
import type { JsonObject } from '../../kernel/json.js';

/** So many bytes of what a base left are carried: with more of it, a revert leaves the set without a base. */
export const carriedBytes = 32 * 1024;

const isSmall = (lefts: Lefts): boolean => Buffer.byteLength(JSON.stringify(lefts)) <= carriedBytes;

/** The base that a set has, with what it left; without a base when that is too much to carry. */
export function presentBase(
  fleet: Fleet,
  set: string | null,
): { readonly base: DriftBase | null; readonly left?: Lefts } {
  const base = baseOf(fleet.singletons.fleet.value, set) ?? null;
  if (base === null || set === null) return { base };
  const left = differing(fleet, new Map(leftOf(fleet.left, set).map(({ owner, state }) => [owner, state])));
  return isSmall(left) ? { base, left } : { base: null };
}

/** What was left, of that what the fleet has otherwise. */
function differing(fleet: Fleet, lefts: ReadonlyMap<Owner, object | null>): Lefts {
  const found: Record<string, JsonObject | null> = {};
  for (const [owner, left] of lefts) {
    const { type, id } = splitOwner(owner);
    const now =
      owner === settingsOwner
        ? fieldsOfSettings(fleet.singletons.connectivity.value)
        : fleet.get<AnyState>({ type }, id);
    const fields = owner === settingsOwner ? settingsFields(left, now) : describedFields(type as ResourceType);
    if (!differs(left, now, fields)) continue;
    found[owner] =
      left === null ? null : Object.fromEntries(fields.map((field) => [field, fieldIn(left, field)] as const));
  }
  return found;
}

const settingsFields = (left: object | null, now: object | undefined): readonly string[] =>
  [...new Set([...Object.keys(left ?? {}), ...Object.keys(now ?? {})])].filter(
    (field) => field !== 'version' && field !== 'updated_at',
  );

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

/** The event that begins the revert of an entry, before it is known what the revert leaves. */
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
      ...(former === undefined ? {} : { applied: {} }),
    },
  };
}

/** The event with what its base has left. @param after the fleet behind the revert */
export function withApplied(fleet: Fleet, after: Fleet, entry: RecordedCommand, moved: FleetBaseMoved): FleetBaseMoved {
  const { name, base, applied } = moved.data;
  const { left = {} } = back(entry.events[0], baseOf(fleet.singletons.fleet.value, name) ?? null);
  if (name === null || applied === undefined || base.to === null) return moved;
  const lefts = new Map<Owner, object | null>(leftOf(fleet.left, name).map(({ owner, state }) => [owner, state]));
  // Where it was changed since the entry, what the entry found is what the entry left, less what it did.
  for (const recorded of entry.events.toReversed()) {
    const { type, id } = resourceOf(recorded);
    const owner = ownerOf(type, id);
    if (type !== fleetSetType && lefts.has(owner)) lefts.set(owner, withoutEvent(lefts.get(owner) ?? null, recorded));
  }
  for (const [owner, state] of Object.entries(left)) lefts.set(owner, state);
  const found = differing(after, lefts);
  return isSmall(found)
    ? { ...moved, data: { ...moved.data, applied: found } }
    : { ...moved, data: { ...moved.data, base: { ...base, to: null } } };
}

/** What there was of a resource before an event. */
function withoutEvent(state: object | null, recorded: RecordedEvent): object | null {
  const undo = undoOf(recorded);
  switch (undo?.kind) {
    case undefined:
      return state;
    case 'delete':
      return null;
    case 'restore':
      return recorded.data;
    case 'change': {
      if (state === null) return null;
      const fields = Object.entries(undo.changes).filter(([field]) => !isLabelField(field));
      const values = Object.fromEntries(fields.map(([field, { from }]) => [field, from] as const));
      const reversed = Object.entries(undo.changes).map(
        ([field, { from, to }]) => [field, { from: to, to: from }] as const,
      );
      const labels: unknown = Reflect.get(state, 'labels');
      return {
        ...state,
        ...values,
        ...(labels === undefined ? {} : { labels: evolveLabels(labels as Labels, Object.fromEntries(reversed)) }),
      };
    }
  }
}

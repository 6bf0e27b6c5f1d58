/**
 * What the last apply of each set left, kept by reference and only of resources that have changed since: a resource
 * without an entry is as the apply left it. A set whose base is taken back keeps its entries, even of resources that
 * leave it, so that the base can be restored whatever happens meanwhile. `fleet-file/drift.ts` compares the entries
 * with the fleet. Implements `docs/contract/automation.md#the-fleet-as-a-file`, drift.
 */
import type { RecordedEvent } from '../../kernel/event.js';
import { jsonEqual, type Json } from '../../kernel/json.js';
import type { Table } from '../aggregate/containers.js';
import { ownerOf, splitOwner, type Owner } from '../references/references.js';
import { connectivity } from '../settings/declaration.js';
import { baseOf, setEvent, type DriftBases, type FleetBaseMoved, type FleetSetEvent } from './declaration.js';

export interface Left {
  readonly set: string;
  readonly owner: Owner;
  /** A state, or its fields that a document describes; null for a resource that did not exist. */
  readonly state: object | null;
  /**
   * The state when the base moved last: what the former base left, unless the event of the move says otherwise. Absent when
   * it is `state`.
   */
  readonly atMove?: object | null;
  /** The last set of a deleted resource; null for none. */
  readonly goneFrom?: string | null;
}

/** By set and owner: a set may have adopted a resource of another one, to which a revert returns it. */
export type LeftTable = Table<Left>;

/** The key of the settings among what applies left. */
export const settingsOwner = ownerOf(connectivity.type, connectivity.id);

const keyOf = (set: string, owner: Owner): string => `${owner} ${set}`;

export const fieldIn = (state: object | null | undefined, field: string): Json =>
  state === null || state === undefined ? null : ((Reflect.get(state, field) as Json | undefined) ?? null);

/** Whether two states differ in any of the fields. */
export function differs(
  a: object | null | undefined,
  b: object | null | undefined,
  fields: readonly string[],
): boolean {
  if (((a ?? null) === null) !== ((b ?? null) === null)) return true;
  return fields.some((field) => !jsonEqual(fieldIn(a, field), fieldIn(b, field)));
}

/** The entries of a set. */
export const leftOf = (table: LeftTable, set: string): readonly Left[] =>
  [...table.values()].filter((one) => one.set === set);

/**
 * Clears the entries of a set for a new base, or makes them those of a base that is restored.
 * @param event the first of its command
 * @param now the present state of a resource, or the fields of the settings
 */
export function beginBase(table: LeftTable, { type, data }: FleetSetEvent, now: (owner: Owner) => object | null): void {
  const { name: set } = data;
  if (set === null) return;
  if (type === 'FleetApplied') {
    if (data.part === 1) for (const { owner } of leftOf(table, set)) table.delete(keyOf(set, owner));
    return;
  }
  const { base, applied = {} } = data;
  if (isMove(data)) {
    for (const { atMove, ...entry } of leftOf(table, set)) {
      const state = atMove === undefined ? entry.state : atMove;
      table.set(keyOf(set, entry.owner), { ...entry, state, atMove: now(entry.owner) });
    }
    const ofSettings = keyOf(set, settingsOwner);
    if (base.from?.settings !== undefined && !table.has(ofSettings)) {
      table.set(ofSettings, { set, owner: settingsOwner, state: now(settingsOwner) });
    }
  }
  for (const [owner, state] of Object.entries(applied)) {
    table.set(keyOf(set, owner), { set, owner, state, atMove: now(owner) });
  }
}

const isMove = ({ base }: FleetBaseMoved['data']): boolean => base.from?.apply_id !== base.to?.apply_id;

/**
 * Forgets what sets without a base had left of resources that are gone. Nothing else does so until such a set is
 * applied.
 * @param set whose base moves, and may be restored
 */
export function forgetGone(
  table: LeftTable,
  bases: DriftBases,
  set: string | null,
  isThere: (type: string, id: string) => boolean,
): void {
  const gone = [...table.entries()].filter(([, one]) => {
    if (one.set === set || one.owner === settingsOwner || baseOf(bases, one.set) !== undefined) return false;
    const { type, id } = splitOwner(one.owner);
    return !isThere(type, id);
  });
  for (const [key] of gone) table.delete(key);
}

/** Whether the events of a command belong to its set's base, rather than being manual edits. */
function isOwn({ type, data }: FleetSetEvent): boolean {
  if (type === 'FleetApplied') return true;
  return data.applied !== undefined || isMove(data);
}

/** A change of one resource, or of the settings. */
export interface Changed {
  readonly owner: Owner;
  readonly before: object | undefined;
  readonly after: object | undefined;
  /** The change as a function of any state. */
  readonly next: (state: object) => object | undefined;
  /** The fields that documents describe. */
  readonly fields: readonly string[];
  /** The sets that it affects. */
  readonly sets: Iterable<string>;
  /** The resource's set before the change. */
  readonly from?: string | null;
  /** The first event of its command, which tells an apply from a manual edit. */
  readonly first: RecordedEvent;
}

/** An entry after a change by a command of its set; undefined for none. */
function afterOwn(known: Left | undefined, change: Changed, set: string, event: FleetSetEvent): Left | undefined {
  const { owner, before, after } = change;
  const moves = event.type === 'FleetBaseMoved';
  if (known === undefined) {
    const isTakenOut = moves && change.from === set && after !== undefined && fieldIn(after, 'managed_by') !== set;
    return isTakenOut ? { set, owner, state: after } : undefined;
  }
  const atMove = moves ? { atMove: after ?? null } : {};
  const isGiven = moves && Object.hasOwn(event.data.applied ?? {}, owner);
  if (isGiven || known.state === null) return { ...known, ...atMove };
  const state = before === undefined ? undefined : change.next(known.state);
  return state === undefined ? undefined : { ...known, state, ...atMove };
}

/** Keeps what the affected sets' applies left, before a change overwrites it. */
export function keepLeft(table: LeftTable, bases: DriftBases, change: Changed): void {
  const { owner, before, after, fields, first } = change;
  const event = first.type === 'FleetApplied' || first.type === 'FleetBaseMoved' ? setEvent(first) : undefined;
  for (const set of new Set(change.sets)) {
    const key = keyOf(set, owner);
    const known = table.get(key);
    if (event?.data.name === set && isOwn(event)) {
      const entry = afterOwn(known, change, set, event);
      if (entry === undefined) table.delete(key);
      else table.set(key, entry);
    } else if (known === undefined && differs(before, after, fields)) {
      table.set(key, { set, owner, state: before ?? null });
    }
  }
  if (before === undefined || after !== undefined) return;
  for (const set of Object.keys(bases)) {
    const known = table.get(keyOf(set, owner));
    if (known !== undefined) table.set(keyOf(set, owner), { ...known, goneFrom: change.from ?? null });
  }
}

/**
 * What the last apply of each set left, kept by reference and only of resources that have changed since: a resource without
 * an entry is as the apply left it. `fleet-file/drift.ts` compares the entries with the fleet. Implements
 * `docs/contract/automation.md#the-fleet-as-a-file`, drift.
 */
import type { RecordedEvent } from '../../kernel/event.js';
import { jsonEqual, type Json } from '../../kernel/json.js';
import type { Table } from '../aggregate/containers.js';
import type { Owner } from '../references/references.js';
import { baseOf, setEvent, type DriftBases, type FleetSetEvent } from './declaration.js';

export interface Left {
  readonly set: string;
  readonly owner: Owner;
  /** A state, or its fields that a document describes; null for a resource that did not exist. */
  readonly state: object | null;
  /** The last set of a deleted resource; null for none. */
  readonly goneFrom?: string | null;
}

/** By set and owner: a set may have adopted a resource of another one, to which a revert returns it. */
export type LeftTable = Table<Left>;

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

/** Clears the entries of a set for a new base, or restores those of the former one. @param event the first of its command */
export function beginBase(table: LeftTable, { type, data }: FleetSetEvent): void {
  const { name: set } = data;
  if (set === null) return;
  if (type === 'FleetApplied' ? data.part === 1 : data.base.to === null) {
    for (const { owner } of leftOf(table, set)) table.delete(keyOf(set, owner));
  } else if (type === 'FleetBaseMoved') {
    for (const [owner, state] of Object.entries(data.applied ?? {})) {
      table.set(keyOf(set, owner), { set, owner, state });
    }
  }
}

/** Whether the events of a command belong to its set's base, rather than being manual edits. */
function isOwn({ type, data }: FleetSetEvent): boolean {
  if (type === 'FleetApplied') return true;
  return data.applied !== undefined || data.base.from?.apply_id !== data.base.to?.apply_id;
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

/** Keeps what the affected sets' applies left, before a change overwrites it. */
export function keepLeft(table: LeftTable, bases: DriftBases, change: Changed): void {
  const { owner, before, after, fields, first } = change;
  const event = first.type === 'FleetApplied' || first.type === 'FleetBaseMoved' ? setEvent(first) : undefined;
  for (const set of new Set(change.sets)) {
    if (baseOf(bases, set) === undefined) continue;
    const key = keyOf(set, owner);
    const known = table.get(key);
    if (event?.data.name === set && isOwn(event)) {
      const isGiven = event.type === 'FleetBaseMoved' && Object.hasOwn(event.data.applied ?? {}, owner);
      if (known === undefined || known.state === null || isGiven) continue;
      const state = before === undefined ? undefined : change.next(known.state);
      if (state === undefined) table.delete(key);
      else table.set(key, { ...known, state });
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

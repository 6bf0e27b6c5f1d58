/**
 * The decisions to create, update, delete and restore, which resources share. A resource adds its own rules as two functions.
 * Checks have the order of `docs/contract/rest.md#envelope`.
 */
import { err, ok } from '../../kernel/result.js';
import { changesOf, withChanges } from './change.js';
import type { Decisions } from './declaration.js';
import type { FleetView, ResourceKey } from './fleet-view.js';
import type { Decision, Refusal } from './refusal.js';
import { pick, type AnyEvent, type Former, type LifecycleCommand, type LifecycleEvent } from './lifecycle.js';
import type { Owned, ResourceMeta } from './meta.js';
import { existing, exists, nameTaken, newNameRefusal, stillUsed, unlessRefused, type Addressed } from './rules.js';

/** Why a resource cannot be saved as `next`. @param before the saved state; undefined for a new or restored resource */
type SaveRule<S> = (fleet: FleetView, next: S, before: S | undefined) => Refusal | undefined;

export interface SaveRules<S> {
  /** Why the definition is invalid by itself, or has a wrong reference. */
  readonly invalid?: SaveRule<S>;
  /** Why it conflicts with the rest of the fleet. Taken names and objections of referrers are checked for every resource. */
  readonly conflict?: SaveRule<S>;
}

export interface LifecycleShape<S> {
  readonly type: string;
  readonly noun: string;
  readonly singular: string;
  /** The fields of the definition. */
  readonly fields: readonly (keyof S)[];
  /** The fields of a new resource's state besides its definition. */
  readonly initial: Partial<S>;
  /** The initial fields that a delete carries, so that a restore brings them back. */
  readonly alsoDeleted: readonly (keyof S)[];
}

/** Drops a `managed_by` of null, which events leave out. */
export function owned<D extends object>(definition: D): D {
  if (Reflect.get(definition, 'managed_by') !== null) return definition;
  const { managed_by: _, ...rest } = definition as Owned;
  return rest as D;
}

/** One decision for each of the four commands. */
export function lifecycleDecisions<
  Noun extends string,
  Singular extends string,
  S extends ResourceMeta & { readonly name: string },
  D,
  Fixed extends keyof D,
  AlsoDeleted,
>(
  { type, noun, singular, fields, initial, alsoDeleted }: LifecycleShape<S>,
  { invalid, conflict }: SaveRules<S>,
): Decisions<LifecycleCommand<Noun, D, Fixed, AlsoDeleted>, LifecycleEvent<Noun, `${Singular}_id`, D, AlsoDeleted>> {
  const key: ResourceKey<S> = { type };
  const saved: readonly (keyof S)[] = [...fields, 'managed_by'];
  const kept = [...saved, ...alsoDeleted];
  const event = (verb: string, id: string, data: object): AnyEvent => ({
    type: `${noun}${verb}`,
    data: { [`${singular}_id`]: id, ...data },
  });
  /** A state before its first event. */
  const unsaved = (id: string, definition: Partial<S>): S =>
    ({ ...initial, ...definition, id, version: 0, created_at: '', updated_at: '' }) as S;

  function refusalOf(fleet: FleetView, next: S, before?: S, refused = newNameRefusal): Refusal | undefined {
    return (
      invalid?.(fleet, next, before) ??
      refused(fleet, type, next.name, before) ??
      (before === undefined ? undefined : fleet.objectionTo(type, next)) ??
      conflict?.(fleet, next, before)
    );
  }

  const decisions = {
    [`Create${noun}`](fleet: FleetView, command: S): Decision<AnyEvent> {
      const definition = pick(command, saved);
      const refusal = refusalOf(fleet, unsaved(command.id, definition));
      return unlessRefused(refusal, event('Created', command.id, owned(definition)));
    },
    [`Update${noun}`](fleet: FleetView, command: Addressed & Partial<S>): Decision<AnyEvent> {
      const found = existing(fleet, key, command);
      if (!found.ok) return err(found.error);
      const changes = changesOf(found.value, command, saved);
      if (Object.keys(changes).length === 0) return ok([]);
      const refusal = refusalOf(fleet, withChanges(found.value, changes), found.value);
      return unlessRefused(refusal, event('Updated', command.id, { changes }));
    },
    [`Delete${noun}`](fleet: FleetView, command: Addressed): Decision<AnyEvent> {
      const found = existing(fleet, key, command);
      if (!found.ok) return err(found.error);
      const refusal = stillUsed(fleet, type, found.value);
      return unlessRefused(refusal, event('Deleted', command.id, owned(pick(found.value, kept))));
    },
    [`Restore${noun}`](fleet: FleetView, command: S & { readonly former: Former }): Decision<AnyEvent> {
      const { id, former } = command;
      const definition = pick<S, keyof S>(command, kept);
      const refusal = exists(fleet, type, id) ?? refusalOf(fleet, unsaved(id, definition), undefined, nameTaken);
      return unlessRefused(refusal, event('Restored', id, { ...owned(definition), former }));
    },
  };
  // The compiler does not follow command and event names made from a noun.
  return decisions as ReturnType<typeof lifecycleDecisions<Noun, Singular, S, D, Fixed, AlsoDeleted>>;
}

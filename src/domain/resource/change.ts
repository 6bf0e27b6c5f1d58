/**
 * Field changes with both values, so that an update event can be undone from its own data.
 * Implements `docs/contract/domain.md#commands-and-events`.
 */
import { jsonEqual, type Json } from '../../kernel/json.js';

export interface FieldChange<T = Json> {
  readonly from: T;
  readonly to: T;
}

/** By field name. A label is the field `labels.<key>`, a node's override in the settings `nodes.<id>`. */
export type Changes = { readonly [field: string]: FieldChange };

/**
 * The changes of a partial update, without absent fields and equal values.
 * @param fields those that may change, in the order of the event
 */
export function changesOf<S extends object>(
  state: S,
  update: { readonly [K in keyof S]?: S[K] | undefined },
  fields: readonly (keyof S)[],
): Changes {
  const changes: Record<string, FieldChange> = {};
  for (const field of fields) {
    const to = update[field];
    if (to === undefined) continue;
    const from = state[field] ?? null;
    if (!jsonEqual(from, to)) changes[String(field)] = { from: from as Json, to: to as Json };
  }
  return changes;
}

/** The changes that undo these. */
export function inverseOf(changes: Changes): Changes {
  return Object.fromEntries(Object.entries(changes).map(([field, { from, to }]) => [field, { from: to, to: from }]));
}

/** The state with the new values of its changed fields; top-level fields only. */
export function withChanges<S extends object>(state: S, changes: Changes): S {
  const values: Record<string, Json> = {};
  for (const [field, { to }] of Object.entries(changes)) values[field] = to;
  return { ...state, ...values };
}

/** The fold of a resource's lifecycle events. */
import { withChanges, type Changes } from './change.js';
import type { EventContext } from './declaration.js';
import type { AnyEvent, Former } from './lifecycle.js';
import type { LifecycleShape } from './lifecycle-decisions.js';
import { firstVersion, nextVersion, restoredVersion, type ResourceMeta } from './meta.js';

/**
 * @returns the state after one event; undefined once deleted, or if the resource does not exist. Ignores the creation or
 * restore of one that exists, which this service never writes
 */
export function lifecycleFold<S extends ResourceMeta, E extends AnyEvent>({
  noun,
  singular,
  initial,
}: Pick<LifecycleShape<S>, 'noun' | 'singular' | 'initial'>): (
  state: S | undefined,
  event: E,
  context: EventContext,
) => S | undefined {
  const idField = `${singular}_id`;
  const [created, restored, deleted] = [`${noun}Created`, `${noun}Restored`, `${noun}Deleted`];
  return (state, { type, data }, { at }) => {
    if (type === created) {
      if (state !== undefined) return state;
      return stateOf(initial, data, [idField], firstVersion(idIn(data, idField), at));
    }
    if (type === restored) {
      if (state !== undefined) return state;
      const { former } = data as { readonly former: Former };
      return stateOf(initial, data, [idField, 'former'], restoredVersion(idIn(data, idField), former, at));
    }
    if (state === undefined || type === deleted) return undefined;
    return nextVersion(withChanges(state, (data as { readonly changes: Changes }).changes), at);
  };
}

const idIn = (data: object, idField: string): string => String(Reflect.get(data, idField));

/**
 * The definition in an event's data, with the meta. A loop, because every command is folded several times, and removing
 * fields by computed names is slow.
 */
function stateOf<S extends ResourceMeta>(
  initial: Partial<S>,
  data: object,
  except: readonly string[],
  meta: ResourceMeta,
): S {
  const state: Record<string, unknown> = { ...initial };
  for (const [field, value] of Object.entries(data)) if (!except.includes(field)) state[field] = value;
  return Object.assign(state, meta) as S;
}

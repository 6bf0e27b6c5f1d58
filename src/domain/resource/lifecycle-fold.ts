/** The fold of a resource that has no other events than those of its life. Used by the fleet and by its read model. */
import type { Changes } from './change.js';
import { withChanges } from './change.js';
import type { EventContext } from './declaration.js';
import type { LifecycleEvent } from './lifecycle.js';
import type { ResourceMeta } from './meta.js';
import { born, touched } from './meta.js';

/**
 * @param noun as in `UpstreamCreated`
 * @param one as in `upstream_id`
 * @returns the state after one event; undefined once deleted, and for an event of a resource that is not there
 */
export function lifecycleFold<S extends ResourceMeta, Noun extends string, One extends string>(
  noun: Noun,
  one: One,
): (
  state: S | undefined,
  event: LifecycleEvent<Noun, `${One}_id`, Omit<S, keyof ResourceMeta>>,
  context: EventContext,
) => S | undefined {
  const idField = `${one}_id`;
  return (state, event, { at }) => {
    if (event.type === `${noun}Created`) {
      const { [idField]: id, ...fields } = event.data as Record<string, unknown>;
      return { ...fields, ...born(String(id), at) } as S;
    }
    if (state === undefined || event.type === `${noun}Deleted`) return undefined;
    return touched(withChanges(state, (event.data as { readonly changes: Changes }).changes), at);
  };
}

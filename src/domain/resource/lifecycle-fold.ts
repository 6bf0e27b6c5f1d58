/** The fold of a resource that has no events but those of its lifecycle. The fleet and the read model both use it. */
import type { Changes } from './change.js';
import { withChanges } from './change.js';
import type { EventContext } from './declaration.js';
import type { Former, LifecycleEvent } from './lifecycle.js';
import type { ResourceMeta } from './meta.js';
import { firstVersion, nextVersion, restoredVersion } from './meta.js';

/**
 * @param noun `Upstream` of `UpstreamCreated`
 * @param singular `upstream` of `upstream_id`
 * @returns the state after one event; undefined once deleted, and for an event of a resource that does not exist. The
 * creation or restoring of one that exists, which this service never writes, changes nothing
 */
export function lifecycleFold<S extends ResourceMeta, Noun extends string, Singular extends string>(
  noun: Noun,
  singular: Singular,
): (
  state: S | undefined,
  event: LifecycleEvent<Noun, `${Singular}_id`, Omit<S, keyof ResourceMeta>>,
  context: EventContext,
) => S | undefined {
  const idField = `${singular}_id`;
  return (state, event, { at }) => {
    if (event.type === `${noun}Created`) {
      if (state !== undefined) return state;
      const { [idField]: id, ...fields } = event.data as Record<string, unknown>;
      return { ...fields, ...firstVersion(String(id), at) } as S;
    }
    if (event.type === `${noun}Restored`) {
      if (state !== undefined) return state;
      const { [idField]: id, former, ...fields } = event.data as Record<string, unknown>;
      return { ...fields, ...restoredVersion(String(id), former as Former, at) } as S;
    }
    if (state === undefined || event.type === `${noun}Deleted`) return undefined;
    return nextVersion(withChanges(state, (event.data as { readonly changes: Changes }).changes), at);
  };
}

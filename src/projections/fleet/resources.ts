/**
 * Read models of the resources whose answers show the folded state: in memory, the committed fleet's own tables.
 * Derived from the declarations. A node is shown as operators described it; what its agent did is in
 * `../models/agents.ts`. Implements `docs/architecture.md#adding-a-resource`.
 */
import type { Fleet } from '../../domain/fleet/fleet.js';
import type { AnyResource, AnyState, PlainType } from '../../domain/fleet/resources.js';
import { plainTypes, resources } from '../../domain/fleet/resources.js';
import type { Table } from '../../domain/aggregate/containers.js';
import type { FleetQueries, ResourceQueries } from '../port.js';
import { createSortedList } from './sorted-list.js';

function resourceQueries(type: PlainType | 'node', fleet: () => Fleet): ResourceQueries<AnyState> {
  const { sealed = [] } = resources[type] as unknown as AnyResource;
  const secrets = Object.fromEntries(sealed.map((field) => [field, null]));
  const shown = (state: AnyState): AnyState => (sealed.length === 0 ? state : { ...state, ...secrets });
  const states = (): Table<AnyState> => fleet().tables[type] as Table<AnyState>;
  const list = createSortedList(states, () => fleet().revision.value);
  return {
    get(id) {
      const state = states().get(id);
      return state === undefined ? undefined : shown(state);
    },
    list(query) {
      const { items, total } = list.page(query);
      return { items: items.map(shown), total };
    },
  };
}

/** @param fleet the committed fleet */
export function nodeQueries(fleet: () => Fleet): FleetQueries['nodes'] {
  return resourceQueries('node', fleet) as unknown as FleetQueries['nodes'];
}

/** The queries of all plain resources. @param fleet the committed fleet */
export function allResourceQueries(fleet: () => Fleet): FleetQueries['resources'] {
  return Object.fromEntries(
    plainTypes.map((type) => [type, resourceQueries(type, fleet)]),
  ) as unknown as FleetQueries['resources'];
}

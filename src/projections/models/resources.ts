/**
 * Read models and queries of the resources whose documents are the folded state, derived from the declarations. Not nodes:
 * their documents also hold what agents did (`nodes.ts`). Implements `docs/architecture.md#adding-a-resource`.
 */
import { fleetEvent } from '../../domain/fleet/events.js';
import type { AnyResource, AnyState, PlainType, ResourceType, StateOf } from '../../domain/fleet/resources.js';
import { declaringResource, plainTypes, resourceOf, resources } from '../../domain/fleet/resources.js';
import { streams } from '../../kernel/event.js';
import type { RecordedEvent } from '../../kernel/event.js';
import type { Json } from '../../kernel/json.js';
import type { Collection, Filter } from '../../storage/read-store.js';
import type { Projections, ResourceQueries } from '../port.js';
import type { ReadModel } from '../read-model.js';
import { asJson, fromJson } from '../read-model.js';
import type { SortFields } from './sorted-list.js';
import { listQuery, sortFields, sortIndexes } from './sorted-list.js';

/** The state is in the field named by `singular`: `upstream`, `chain`. Beside it are the fields that its list is filtered by. */
export type ResourceFields = SortFields & { readonly [one: string]: Json };

const none: readonly string[] = [];

/** The id of the resource that an event is about, if it is of the type. */
export function idOfResource(event: RecordedEvent, type: ResourceType): readonly string[] {
  if (event.stream !== streams.fleet) return none;
  // Every model is asked about every event: the id is looked up for the one that it concerns.
  const fleet = fleetEvent(event);
  return declaringResource(fleet).type === type ? [resourceOf(fleet).id] : none;
}

export function resourceModel(type: PlainType): ReadModel<ResourceFields> {
  const { singular, plural, evolve, sealed = [], filters = [] } = resources[type] as unknown as AnyResource;
  const withoutSecrets = (state: AnyState): AnyState =>
    sealed.length === 0 ? state : { ...state, ...Object.fromEntries(sealed.map((field) => [field, null])) };
  return {
    name: plural,
    indexes: [...sortIndexes, ...filters.map((field) => ({ fields: [field, 'name_key'] }))],
    keys: (event) => idOfResource(event, type),
    evolve(fields, recorded) {
      const event = fleetEvent(recorded);
      if (declaringResource(event).type !== type) return fields;
      const { occurred_at: at, command } = recorded.metadata;
      const before = fields === undefined ? undefined : fromJson<AnyState>(fields[singular] ?? null);
      const state = evolve(before, event, { at, commandId: command.id });
      if (state === undefined) return undefined;
      const filtered = Object.fromEntries(filters.map((field) => [field, state[field]]));
      return { ...sortFields(state), ...filtered, [singular]: asJson(withoutSecrets(state)) };
    },
  };
}

/** @param open returns the collection, or throws `unavailable` while the read models cannot be queried */
function resourceQueries<T extends PlainType>(
  type: T,
  open: () => Collection<ResourceFields>,
): ResourceQueries<StateOf<T>> {
  const { singular } = resources[type];
  const stateOf = (fields: ResourceFields): StateOf<T> => fromJson<StateOf<T>>(fields[singular] ?? null);
  return {
    async get(id) {
      const document = await open().get(id);
      return document === undefined ? undefined : stateOf(document.fields);
    },
    async list(query) {
      const where = Object.entries(query.where ?? {}).flatMap(([field, value]): readonly Filter[] =>
        value === undefined ? [] : [{ field, op: 'eq', value }],
      );
      const { items, total } = await open().find(listQuery(query, where));
      return { items: items.map(({ fields }) => stateOf(fields)), total };
    },
  };
}

/** The queries of all plain resources. */
export function allResourceQueries(open: (type: PlainType) => Collection<ResourceFields>): Projections['resources'] {
  return Object.fromEntries(
    plainTypes.map((type) => [type, resourceQueries(type, () => open(type))]),
  ) as Projections['resources'];
}

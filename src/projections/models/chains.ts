/** Read model of L4 chains, with its queries. Implements `docs/contract/rest.md#l4-chains`. */
import type { ChainEvent, ChainState } from '../../domain/chain/chain.js';
import { evolveChain } from '../../domain/chain/evolve.js';
import type { FleetEvent } from '../../domain/fleet/events.js';
import { resourceOf } from '../../domain/fleet/resource.js';
import { fleetEvent } from '../../domain/log/upcast.js';
import { streams } from '../../kernel/event.js';
import type { Json } from '../../kernel/json.js';
import type { Collection } from '../../storage/read-store.js';
import type { Projections } from '../port.js';
import { asJson, fromJson } from '../read-model.js';
import type { ReadModel } from '../read-model.js';
import { listQuery, sortFields, sortIndexes } from './sorted-list.js';
import type { SortFields } from './sorted-list.js';

export type ChainFields = SortFields & { readonly chain: Json };

const stateOf = (fields: ChainFields): ChainState => fromJson<ChainState>(fields.chain);

const isChainEvent = (event: FleetEvent): event is ChainEvent => resourceOf(event).type === 'l4_chain';

export const chains: ReadModel<ChainFields> = {
  name: 'chains',
  indexes: sortIndexes,

  keys(event) {
    if (event.stream !== streams.fleet) return [];
    const resource = resourceOf(fleetEvent(event));
    return resource.type === 'l4_chain' ? [resource.id] : [];
  },

  evolve(fields, event, command) {
    const own = fleetEvent(event);
    if (!isChainEvent(own)) return fields;
    const before = fields === undefined ? undefined : stateOf(fields);
    const commandId = command.events[0].metadata.command.id;
    const chain = evolveChain(before, own, event.metadata.occurred_at, commandId);
    return chain === undefined ? undefined : { ...sortFields(chain), chain: asJson(chain) };
  },
};

/** @param open gives the collection, or throws `unavailable` while the read models can't be shown */
export function chainQueries(open: () => Collection<ChainFields>): Projections['chains'] {
  return {
    async get(id) {
      const found = await open().get(id);
      return found === undefined ? undefined : stateOf(found.fields);
    },
    async list(query) {
      const { items, total } = await open().find(listQuery(query));
      return { items: items.map(({ fields }) => stateOf(fields)), total };
    },
  };
}

/** Read model of L4 upstreams, with its queries. Implements `docs/contract/rest.md#l4-upstreams`. */
import type { FleetEvent } from '../../domain/fleet/events.js';
import { resourceOf } from '../../domain/fleet/resource.js';
import { fleetEvent } from '../../domain/log/upcast.js';
import { evolveUpstream } from '../../domain/upstream/evolve.js';
import type { UpstreamEvent, UpstreamState } from '../../domain/upstream/upstream.js';
import { streams } from '../../kernel/event.js';
import type { Json } from '../../kernel/json.js';
import type { Collection } from '../../storage/read-store.js';
import type { Projections } from '../port.js';
import { asJson, fromJson } from '../read-model.js';
import type { ReadModel } from '../read-model.js';
import { listQuery, sortFields, sortIndexes } from './sorted-list.js';
import type { SortFields } from './sorted-list.js';

export type UpstreamFields = SortFields & { readonly upstream: Json };

const stateOf = (fields: UpstreamFields): UpstreamState => fromJson<UpstreamState>(fields.upstream);

const isUpstreamEvent = (event: FleetEvent): event is UpstreamEvent => resourceOf(event).type === 'l4_upstream';

export const upstreams: ReadModel<UpstreamFields> = {
  name: 'upstreams',
  indexes: sortIndexes,

  keys(event) {
    if (event.stream !== streams.fleet) return [];
    const resource = resourceOf(fleetEvent(event));
    return resource.type === 'l4_upstream' ? [resource.id] : [];
  },

  evolve(fields, event) {
    const own = fleetEvent(event);
    if (!isUpstreamEvent(own)) return fields;
    const before = fields === undefined ? undefined : stateOf(fields);
    const upstream = evolveUpstream(before, own, event.metadata.occurred_at);
    return upstream === undefined ? undefined : { ...sortFields(upstream), upstream: asJson(upstream) };
  },
};

/** @param open gives the collection, or throws `unavailable` while the read models can't be shown */
export function upstreamQueries(open: () => Collection<UpstreamFields>): Projections['upstreams'] {
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

/** Queries about the listeners of the fleet: which are intended, and which agents report. */
import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, dataOf, type Schemas } from '../shared/api/client.js';
import type { PortsSearch } from './ports-search.js';

export type Port = Schemas['Port'];
export type RuntimeListener = Schemas['RuntimeListener'];
type Filters = Omit<PortsSearch, 'page'>;

const follows = ['l4_chain', 'route', 'l3_network', 'listener_policy', 'connectivity', 'agent'];

export const portsQuery = ({ node_id, transport, listen_port, running }: Filters) =>
  queryOptions({
    queryKey: ['node', 'ports', node_id, transport, listen_port, running],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET('/api/nodes/ports', {
          params: { query: { node_id, transport, listen_port, ...(running && { running: running === 'true' }) } },
          signal,
        }),
      ),
    placeholderData: keepPreviousData,
    meta: { follows },
  });

/** The nodes that run listeners which no deployed definition has. */
export const unexpectedQuery = ({ node_id, transport, listen_port }: Filters) =>
  queryOptions({
    queryKey: ['node', 'unexpected ports', node_id, transport, listen_port],
    queryFn: async ({ signal }) => {
      const query = { node_id, transport, listen_port, intended: false };
      const { nodes } = await dataOf(api.GET('/api/nodes/ports/runtime', { params: { query }, signal }));
      return nodes.filter(({ listeners }) => listeners.length > 0);
    },
    placeholderData: keepPreviousData,
    meta: { follows },
  });

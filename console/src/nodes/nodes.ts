/** What the console asks about nodes and does with them. */
import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, dataOf } from '../shared/api/client.js';
import type { Schemas } from '../shared/api/client.js';
import { pageSize } from '../shared/ui/data-table.js';
import type { NodesSearch } from './nodes-search.js';

export type Node = Schemas['Node'];

/** Heartbeats bring figures without an event for each. */
const vitalsEveryMs = 10_000;

export const nodesQuery = ({ label, ...search }: NodesSearch, size = pageSize) =>
  queryOptions({
    queryKey: ['node', 'list', search, label, size],
    queryFn: ({ signal }) => {
      const query = { ...search, ...(label && { label: [...label] }), page_size: size };
      return dataOf(api.GET('/api/nodes', { params: { query }, signal }));
    },
    placeholderData: keepPreviousData,
    refetchInterval: vitalsEveryMs,
    meta: { follows: ['agent', 'l4_chain', 'route', 'l3_network'] },
  });

export const nodeQuery = (id: string) =>
  queryOptions({
    queryKey: ['node', 'one', id],
    queryFn: ({ signal }) => dataOf(api.GET('/api/nodes/{id}', { params: { path: { id } }, signal })),
    refetchInterval: vitalsEveryMs,
    meta: { follows: ['agent', 'l4_chain', 'route', 'l3_network', 'connectivity'] },
  });

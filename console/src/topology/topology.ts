/**
 * The queries of the topology: groups or nodes with their links, the keys to group by, and nodes that match a search.
 */
import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, dataOf, type Schemas } from '../shared/api/client.js';

export type Topology = Schemas['GroupedTopology'] | Schemas['Topology'];

/** The part of the fleet that is shown. */
export interface View {
  /** Undefined: each node. */
  readonly groupBy: string | undefined;
  /** The open group, empty for nodes without the label; undefined: none. */
  readonly group: string | undefined;
  readonly onlyWrong: boolean;
}

export const labelKeysQuery = queryOptions({
  queryKey: ['node', 'label keys'],
  queryFn: ({ signal }) => dataOf(api.GET('/api/nodes/labels', { signal })),
});

export const topologyQuery = ({ groupBy, group, onlyWrong }: View, enabled: boolean) =>
  queryOptions({
    queryKey: ['node', 'topology', groupBy, group, onlyWrong],
    queryFn: ({ signal }): Promise<Topology> => {
      const query = {
        ...(groupBy !== undefined && { group_by: groupBy }),
        ...(group !== undefined && { group }),
        ...(onlyWrong && { only: 'wrong' as const }),
      };
      return dataOf(api.GET('/api/topology', { params: { query }, signal }));
    },
    enabled,
    placeholderData: keepPreviousData,
    meta: { follows: ['agent', 'l4_chain'] },
  });

const found = 8;

/** Nodes by a part of their name, to find the groups that hold them. */
export const searchedQuery = (q: string) =>
  queryOptions({
    queryKey: ['node', 'searched', q],
    queryFn: ({ signal }) => dataOf(api.GET('/api/nodes', { params: { query: { q, page_size: found } }, signal })),
    enabled: q !== '',
    placeholderData: keepPreviousData,
  });

/** What the topology asks: all nodes, by pages, and the links that the configuration intends between them. */
import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, dataOf, type Schemas } from '../shared/api/client.js';

export type Node = Schemas['Node'];
export type Link = Schemas['NodeLink'];

/** The largest page that the API gives. */
const pageSize = 500;
const follows = ['agent', 'l4_chain', 'route', 'l3_network'];

async function allNodes(signal: AbortSignal): Promise<readonly Node[]> {
  const nodes: Node[] = [];
  for (let page = 1; ; page += 1) {
    const query = { page, page_size: pageSize };
    const { items, total } = await dataOf(api.GET('/api/nodes', { params: { query }, signal }));
    nodes.push(...items);
    if (items.length < pageSize || nodes.length >= total) return nodes;
  }
}

export const fleetQuery = queryOptions({
  queryKey: ['node', 'topology'],
  queryFn: async ({ signal }) => {
    const [nodes, { items: links }] = await Promise.all([
      allNodes(signal),
      dataOf(api.GET('/api/nodes/links', { signal })),
    ]);
    return { nodes, links };
  },
  placeholderData: keepPreviousData,
  meta: { follows },
});

/** Queries and commands of upstreams. */
import { queryOptions } from '@tanstack/react-query';
import { api, dataOf, type Schemas } from '../shared/api/client.js';
import { crud } from '../shared/api/crud.js';

export type Upstream = Schemas['L4Upstream'];

const follows = ['agent', 'l4_chain'] as const;

export const upstreams = crud('l4_upstream', follows);

/** What needs attention comes first; otherwise the API's order, by name, stays. */
export function worstFirst(reports: readonly Schemas['UpstreamHealth'][]): Schemas['UpstreamHealth'][] {
  const rank = ({ healthy }: Schemas['UpstreamHealth']): number => (healthy === false ? 0 : healthy === null ? 1 : 2);
  return reports.toSorted((a, b) => rank(a) - rank(b));
}

export const upstreamHealthQuery = (id: string) =>
  queryOptions({
    queryKey: ['l4_upstream', 'health', id],
    queryFn: ({ signal }) => dataOf(api.GET('/api/l4-upstreams/{id}/health', { params: { path: { id } }, signal })),
    meta: { follows },
  });

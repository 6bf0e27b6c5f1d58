/** Queries and commands of upstreams. */
import { queryOptions } from '@tanstack/react-query';
import type { Schemas } from '../shared/api/client.js';
import { crud, findIn } from '../shared/api/crud.js';
import { read } from '../shared/api/read.js';
import { largestPage } from '../shared/search.js';

export type Upstream = Schemas['L4Upstream'];

export const upstreams = crud('l4_upstream');

/** What needs attention comes first; otherwise the API's order, by name, stays. */
export function worstFirst(reports: readonly Schemas['UpstreamHealth'][]): Schemas['UpstreamHealth'][] {
  const rank = ({ healthy }: Schemas['UpstreamHealth']): number => (healthy === false ? 0 : healthy === null ? 1 : 2);
  return reports.toSorted((a, b) => rank(a) - rank(b));
}

/** The nodes that are offline: what they say of an upstream is only last known. */
export const awayQuery = queryOptions({
  queryKey: ['node', 'away'],
  queryFn: async ({ signal }): Promise<readonly string[]> =>
    (await findIn('node', { status: 'offline', page_size: largestPage }, signal)).items.map(({ id }) => id),
  meta: { follows: ['agent'] },
});

export const upstreamHealthQuery = (id: string) =>
  read('l4_upstream', '/api/l4-upstreams/{id}/health', { path: { id } }, { follows: ['agent', 'l4_chain'] });

/** What the console asks about upstreams and does with them. */
import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, dataOf, doneOf } from '../shared/api/client.js';
import type { Done, Schemas } from '../shared/api/client.js';
import type { Save } from '../shared/forms/resource-form.js';
import type { ListSearch } from '../shared/search.js';
import { pageSize } from '../shared/ui/data-table.js';

export type Upstream = Schemas['L4Upstream'];

export const upstreamsQuery = ({ q, sort, page }: ListSearch) =>
  queryOptions({
    queryKey: ['l4_upstream', 'list', q, sort, page],
    queryFn: ({ signal }) =>
      dataOf(api.GET('/api/l4-upstreams', { params: { query: { q, sort, page, page_size: pageSize } }, signal })),
    placeholderData: keepPreviousData,
  });

export const upstreamQuery = (id: string) =>
  queryOptions({
    queryKey: ['l4_upstream', 'one', id],
    queryFn: ({ signal }) => dataOf(api.GET('/api/l4-upstreams/{id}', { params: { path: { id } }, signal })),
  });

/** Agents report it, without an event for each report. */
const healthEveryMs = 10_000;

export const upstreamHealthQuery = (id: string) =>
  queryOptions({
    queryKey: ['l4_upstream', 'health', id],
    queryFn: ({ signal }) => dataOf(api.GET('/api/l4-upstreams/{id}/health', { params: { path: { id } }, signal })),
    refetchInterval: healthEveryMs,
    meta: { follows: ['agent', 'l4_chain'] },
  });

/** The chains that end there. */
export const chainsOfUpstreamQuery = (id: string) =>
  queryOptions({
    queryKey: ['l4_chain', 'of upstream', id],
    queryFn: ({ signal }) =>
      dataOf(api.GET('/api/l4-chains', { params: { query: { upstream_id: id, page_size: pageSize } }, signal })),
  });

export const createUpstream = ({ values, headers: header }: Save<Schemas['NewL4Upstream']>): Promise<Done<Upstream>> =>
  doneOf(api.POST('/api/l4-upstreams', { params: { header }, body: values as Schemas['NewL4Upstream'] }));

export const updateUpstream = (
  id: string,
  { values, headers: header }: Save<Schemas['L4UpstreamChanges']>,
): Promise<Done<Upstream>> =>
  doneOf(api.PUT('/api/l4-upstreams/{id}', { params: { path: { id }, header }, body: values }));

export const deleteUpstream = (id: string): Promise<Done<unknown>> =>
  doneOf(api.DELETE('/api/l4-upstreams/{id}', { params: { path: { id } } }));

/** What the console asks about upstreams and does with them. */
import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, dataOf, doneOf } from '../shared/api/client.js';
import type { Done, Schemas } from '../shared/api/client.js';
import type { Save } from '../shared/forms/resource-form.js';
import { pageSize } from '../shared/ui/data-table.js';
import type { UpstreamsSearch } from './upstreams-search.js';

export type Upstream = Schemas['L4Upstream'];

const follows = ['agent', 'l4_chain'] as const;

export const upstreamsQuery = ({ q, sort, page, health }: UpstreamsSearch) =>
  queryOptions({
    queryKey: ['l4_upstream', 'list', q, sort, page, health],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET('/api/l4-upstreams', { params: { query: { q, sort, page, health, page_size: pageSize } }, signal }),
      ),
    placeholderData: keepPreviousData,
    meta: { follows },
  });

export const upstreamQuery = (id: string) =>
  queryOptions({
    queryKey: ['l4_upstream', 'one', id],
    queryFn: ({ signal }) => dataOf(api.GET('/api/l4-upstreams/{id}', { params: { path: { id } }, signal })),
    meta: { follows },
  });

export const upstreamHealthQuery = (id: string) =>
  queryOptions({
    queryKey: ['l4_upstream', 'health', id],
    queryFn: ({ signal }) => dataOf(api.GET('/api/l4-upstreams/{id}/health', { params: { path: { id } }, signal })),
    meta: { follows },
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

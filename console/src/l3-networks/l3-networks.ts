/** What the console asks about L3 networks and does with them. */
import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, dataOf, doneOf } from '../shared/api/client.js';
import type { Done, Schemas } from '../shared/api/client.js';
import type { Save } from '../shared/forms/resource-form.js';
import type { ListSearch } from '../shared/search.js';
import { pageSize } from '../shared/ui/data-table.js';

export type L3Network = Schemas['L3Network'];
export type MemberNode = Schemas['L3NetworkNode'];

export const networksQuery = ({ q, sort, page }: ListSearch) =>
  queryOptions({
    queryKey: ['l3_network', 'list', q, sort, page],
    queryFn: ({ signal }) =>
      dataOf(api.GET('/api/l3-networks', { params: { query: { q, sort, page, page_size: pageSize } }, signal })),
    placeholderData: keepPreviousData,
  });

export const networkQuery = (id: string) =>
  queryOptions({
    queryKey: ['l3_network', 'one', id],
    queryFn: ({ signal }) => dataOf(api.GET('/api/l3-networks/{id}', { params: { path: { id } }, signal })),
  });

/** The nodes of its members, by name and status. */
export const memberNodesQuery = (id: string) =>
  queryOptions({
    queryKey: ['l3_network', 'nodes', id],
    queryFn: ({ signal }) => dataOf(api.GET('/api/l3-networks/{id}/nodes', { params: { path: { id } }, signal })),
    meta: { follows: ['node', 'agent'] },
  });

/** The names that its credential answers to, of which a network has one. */
export const namesOfCredentialQuery = (id: string) =>
  queryOptions({
    queryKey: ['credential', 'names', id],
    queryFn: async ({ signal }) =>
      (await dataOf(api.GET('/api/credentials/{id}', { params: { path: { id } }, signal }))).server_names,
    enabled: id !== '',
  });

export const createNetwork = ({ values, headers: header }: Save<Schemas['NewL3Network']>): Promise<Done<L3Network>> =>
  doneOf(api.POST('/api/l3-networks', { params: { header }, body: values as Schemas['NewL3Network'] }));

export const updateNetwork = (
  id: string,
  { values: body, headers: header }: Save<Schemas['L3NetworkChanges']>,
): Promise<Done<L3Network>> => doneOf(api.PUT('/api/l3-networks/{id}', { params: { path: { id }, header }, body }));

export const deleteNetwork = (id: string): Promise<Done<unknown>> =>
  doneOf(api.DELETE('/api/l3-networks/{id}', { params: { path: { id } } }));

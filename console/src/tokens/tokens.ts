/** What the console asks about API tokens and does with them. The token itself is in one answer and in no cache. */
import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, dataOf, doneOf } from '../shared/api/client.js';
import type { Done, Schemas } from '../shared/api/client.js';
import type { Save } from '../shared/forms/resource-form.js';
import type { ListSearch } from '../shared/search.js';
import { pageSize } from '../shared/ui/data-table.js';

export type ApiToken = Schemas['ApiToken'];

export const tokensQuery = ({ q, sort, page }: ListSearch) =>
  queryOptions({
    queryKey: ['api_token', 'list', q, sort, page],
    queryFn: ({ signal }) =>
      dataOf(api.GET('/api/auth/tokens', { params: { query: { q, sort, page, page_size: pageSize } }, signal })),
    placeholderData: keepPreviousData,
  });

export const tokenQuery = (id: string) =>
  queryOptions({
    queryKey: ['api_token', 'one', id],
    queryFn: ({ signal }) => dataOf(api.GET('/api/auth/tokens/{id}', { params: { path: { id } }, signal })),
  });

export const createToken = ({
  values,
  headers: header,
}: Save<Schemas['NewApiToken']>): Promise<Done<Schemas['CreatedApiToken']>> =>
  doneOf(api.POST('/api/auth/tokens', { params: { header }, body: values as Schemas['NewApiToken'] }));

export const deleteToken = (id: string): Promise<Done<unknown>> =>
  doneOf(api.DELETE('/api/auth/tokens/{id}', { params: { path: { id } } }));

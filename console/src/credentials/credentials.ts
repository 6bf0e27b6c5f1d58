/** What the console asks about credentials and does with them. Private keys go out and never come back. */
import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, dataOf, doneOf } from '../shared/api/client.js';
import type { Done, Schemas } from '../shared/api/client.js';
import type { Save } from '../shared/forms/resource-form.js';
import { pageSize } from '../shared/ui/data-table.js';
import type { CredentialsSearch } from './credentials-search.js';

export type Credential = Schemas['Credential'];
export type Certificate = Schemas['Certificate'];
type Changes = Schemas['CredentialChanges'];

/** What uses one changes without it. */
const users = ['l4_chain', 'l3_network'] as const;

export const credentialsQuery = (search: CredentialsSearch) =>
  queryOptions({
    queryKey: ['credential', 'list', search],
    queryFn: ({ signal }) => {
      const { q, sort, page, key_type, expires_before } = search;
      const query = { q, sort, page, key_type, expires_before, page_size: pageSize };
      return dataOf(api.GET('/api/credentials', { params: { query }, signal }));
    },
    placeholderData: keepPreviousData,
    meta: { follows: users },
  });

export const credentialQuery = (id: string) =>
  queryOptions({
    queryKey: ['credential', 'one', id],
    queryFn: ({ signal }) => dataOf(api.GET('/api/credentials/{id}', { params: { path: { id } }, signal })),
    meta: { follows: users },
  });

export const createCredential = (
  body: Schemas['NewCredential'],
  header: Save<never>['headers'],
): Promise<Done<Credential>> => doneOf(api.POST('/api/credentials', { params: { header }, body }));

/** Changes it; a key or certificate among the changes rotates it. */
export const updateCredential = (id: string, { values, headers: header }: Save<Changes>): Promise<Done<Credential>> =>
  doneOf(api.PUT('/api/credentials/{id}', { params: { path: { id }, header }, body: values }));

export const deleteCredential = (id: string): Promise<Done<unknown>> =>
  doneOf(api.DELETE('/api/credentials/{id}', { params: { path: { id } } }));

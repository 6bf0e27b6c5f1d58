/** What the console asks about users and does with them, as an admin. */
import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, dataOf, doneOf } from '../shared/api/client.js';
import type { Done, Schemas } from '../shared/api/client.js';
import type { Save } from '../shared/forms/resource-form.js';
import type { ListSearch } from '../shared/search.js';
import { pageSize } from '../shared/ui/data-table.js';

export type User = Schemas['User'];

export const usersQuery = ({ q, sort, page }: ListSearch) =>
  queryOptions({
    queryKey: ['user', 'list', q, sort, page],
    queryFn: ({ signal }) =>
      dataOf(api.GET('/api/auth/users', { params: { query: { q, sort, page, page_size: pageSize } }, signal })),
    placeholderData: keepPreviousData,
  });

export const userQuery = (id: string) =>
  queryOptions({
    queryKey: ['user', 'one', id],
    queryFn: ({ signal }) => dataOf(api.GET('/api/auth/users/{id}', { params: { path: { id } }, signal })),
  });

export const createUser = (body: Schemas['NewUser'], header: Save<never>['headers']): Promise<Done<User>> =>
  doneOf(api.POST('/api/auth/users', { params: { header }, body }));

export const resetPassword = (id: string, body: Schemas['PasswordReset']): Promise<Done<User>> =>
  doneOf(api.PUT('/api/auth/users/{id}/password', { params: { path: { id } }, body }));

/** Who is signed in, and what they may do: the rules are the service's, this only hides what it would refuse. */
import { queryOptions, useQuery } from '@tanstack/react-query';
import { api, dataOf, type Schemas } from './api/client.js';
import { letGo, mayLeave } from './forms/losses.js';
import { queryClient } from './live/queries.js';

export type Role = Schemas['User']['role'];

const roles: readonly Role[] = ['viewer', 'operator', 'admin'];

export const meQuery = queryOptions({
  queryKey: ['me'],
  queryFn: ({ signal }) => dataOf(api.GET('/api/auth/me', { signal })),
  staleTime: Infinity,
});

/** Whether the person may do what needs this role. */
export function useMay(needed: Role): boolean {
  const { data } = useQuery(meQuery);
  return data !== undefined && roles.indexOf(data.role) >= roles.indexOf(needed);
}

/** The roles that somebody of this role may give to a token. */
export const rolesUpTo = (role: Role): readonly Role[] => roles.slice(0, roles.indexOf(role) + 1);

/** Signs in with a cookie. What the same person typed before their session ended stays. @throws Refusal */
export async function signIn(username: string, password: string): Promise<void> {
  const before = queryClient.getQueryData(meQuery.queryKey);
  await dataOf(api.POST('/api/auth/login', { body: { username, password, cookie: true } }));
  const me = await dataOf(api.GET('/api/auth/me'));
  if (before !== undefined && before.id !== me.id) return queryClient.resetQueries();
  queryClient.setQueryData(meQuery.queryKey, me);
  await queryClient.invalidateQueries();
}

/** Asks first if something would be lost. @throws Refusal */
export async function signOut(): Promise<void> {
  if (!(await mayLeave())) return;
  await dataOf(api.POST('/api/auth/logout'));
  letGo();
  location.assign('/console/');
}

/**
 * Reads and changes the resources that the API lists: each type in the same way, by its path, and typed by the OpenAPI
 * document. Anything else about a type is with its pages.
 */
import { keepPreviousData, queryOptions, type QueryKey, type UseQueryOptions } from '@tanstack/react-query';
import { pageSize } from '../search.js';
import { api, dataOf, doneOf, type Answer, type Done, type Refusal } from './client.js';
import type { paths } from './openapi.gen.js';

/** The list of each type. */
const lists = {
  node: '/api/nodes',
  l4_chain: '/api/l4-chains',
  l4_upstream: '/api/l4-upstreams',
  credential: '/api/credentials',
  route: '/api/routes',
  l3_network: '/api/l3-networks',
  rollout_policy: '/api/rollout-policies',
  join_token: '/api/join-tokens',
  webhook: '/api/webhooks',
  api_token: '/api/auth/tokens',
  user: '/api/auth/users',
} as const;

export type ListedType = keyof typeof lists;

type ListPath<T extends ListedType> = (typeof lists)[T];
type OnePath<T extends ListedType> = `${ListPath<T>}/{id}`;
/** `never` for a path without the method. */
type Operation<P extends keyof paths, M extends string> = paths[P] extends Record<M, infer O> ? O : never;
type Success<O> = O extends { responses: infer R } ? R[keyof R & (200 | 201)] : never;
type DataOf<O> = Success<O> extends { content: { 'application/json': { data: infer D } } } ? D : never;
type BodyOf<O> = O extends { requestBody: { content: { 'application/json': infer B } } } ? B : never;
type QueryOf<O> = O extends { parameters: { query?: infer Q } } ? Omit<NonNullable<Q>, 'page_size'> : never;

/** Filters and order of a list. */
export type SearchOf<T extends ListedType> = QueryOf<Operation<ListPath<T>, 'get'>>;

/** A read, whatever its key. */
export type Query<D> = UseQueryOptions<D, Refusal>;

/** How a form saves. */
export interface Save<V> {
  /** All fields of a new resource, or those of a stored one that were changed. */
  readonly values: Partial<V>;
  /** Send them along: a repeat writes nothing, and a stored resource is changed only in the version that was seen. */
  readonly headers: { readonly 'if-match'?: string; readonly 'idempotency-key'?: string };
}

/** The client for paths that are known only at run time; the types above say what each takes and answers. */
const call = api as Readonly<
  Record<'GET' | 'POST' | 'PUT' | 'DELETE', <D>(path: string, init: object) => Promise<Answer<D>>>
>;

/** The first items that a list finds. @throws Refusal */
export const findIn = <T extends ListedType>(type: T, query: object, signal: AbortSignal) =>
  dataOf(call.GET<DataOf<Operation<ListPath<T>, 'get'>>>(lists[type], { params: { query }, signal }));

/** @throws Refusal */
export const readOne = <T extends ListedType>(type: T, id: string, signal: AbortSignal) =>
  dataOf(call.GET<DataOf<Operation<OnePath<T>, 'get'>>>(`${lists[type]}/{id}`, { params: { path: { id } }, signal }));

/** @param follows other types whose changes are shown */
export function crud<T extends ListedType>(type: T, follows: 'all' | readonly string[] = []) {
  const path = `${lists[type]}/{id}`;
  const meta = { follows };
  return {
    type,
    list: (search: SearchOf<T>) =>
      queryOptions({
        queryKey: [type, 'list', search] as QueryKey,
        queryFn: ({ signal }) => findIn(type, { ...search, page_size: pageSize }, signal),
        placeholderData: keepPreviousData,
        meta,
      }),
    one: (id: string) =>
      queryOptions({
        queryKey: [type, 'one', id] as QueryKey,
        queryFn: ({ signal }) => readOne(type, id, signal),
        meta,
      }),
    create: ({ values: body, headers: header }: Save<BodyOf<Operation<ListPath<T>, 'post'>>>) =>
      doneOf(call.POST<DataOf<Operation<ListPath<T>, 'post'>>>(lists[type], { params: { header }, body })),
    update: (id: string, { values: body, headers: header }: Save<BodyOf<Operation<OnePath<T>, 'put'>>>) =>
      doneOf(call.PUT<DataOf<Operation<OnePath<T>, 'put'>>>(path, { params: { path: { id }, header }, body })),
    remove: (id: string): Promise<Done<unknown>> => doneOf(call.DELETE(path, { params: { path: { id } } })),
  };
}

/** The name of a resource; users have theirs in another field. */
export const nameOf = (resource: { readonly name: string } | { readonly username: string }): string =>
  'username' in resource ? resource.username : resource.name;

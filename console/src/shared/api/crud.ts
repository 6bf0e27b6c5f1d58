/**
 * Reads and changes the resources that the API lists: each type in the same way, by its path, and typed by the OpenAPI
 * document. Anything else about a type is with its pages.
 */
import { pageSize } from '../search.js';
import { dataOf, doneOf, type Done } from './client.js';
import { call, readAs, type DataOf, type Operation } from './read.js';

/** The list of each type, in the order in which a search over all types shows them. */
const lists = {
  node: '/api/nodes',
  l4_chain: '/api/l4-chains',
  l4_upstream: '/api/l4-upstreams',
  credential: '/api/credentials',
  api_token: '/api/auth/tokens',
  route: '/api/routes',
  l3_network: '/api/l3-networks',
  rollout_policy: '/api/rollout-policies',
  join_token: '/api/join-tokens',
  webhook: '/api/webhooks',
  user: '/api/auth/users',
} as const;

export type ListedType = keyof typeof lists;

export const listedTypes = Object.keys(lists) as readonly ListedType[];

export const isListed = (type: string): type is ListedType => Object.hasOwn(lists, type);

/** Other types whose changes the resources of a type show. */
const follows: Readonly<Partial<Record<ListedType, readonly string[]>>> = {
  node: ['agent', 'connectivity', 'l4_chain', 'route', 'l3_network'],
  l4_chain: ['node', 'agent', 'l4_upstream', 'credential'],
  l4_upstream: ['agent', 'l4_chain'],
  // The list of what uses it changes without it.
  credential: ['l4_chain', 'l3_network'],
  // A reset of a password ends those of the person.
  api_token: ['user'],
  // Settings name them.
  rollout_policy: ['connectivity'],
  // Each use makes a node.
  join_token: ['node'],
};

type ListPath<T extends ListedType> = (typeof lists)[T];
type OnePath<T extends ListedType> = `${ListPath<T>}/{id}`;
type ListOf<T extends ListedType> = DataOf<Operation<ListPath<T>, 'get'>>;
type OneOf<T extends ListedType> = DataOf<Operation<OnePath<T>, 'get'>>;
type BodyOf<O> = O extends { requestBody: { content: { 'application/json': infer B } } } ? B : never;
type QueryOf<O> = O extends { parameters: { query?: infer Q } } ? Omit<NonNullable<Q>, 'page_size'> : never;

/** Filters and order of a list. */
export type SearchOf<T extends ListedType> = QueryOf<Operation<ListPath<T>, 'get'>>;

/** How a form saves. */
export interface Save<V> {
  /** All fields of a new resource, or those of a stored one that were changed. */
  readonly values: Partial<V>;
  /** Send them along: a repeat writes nothing, and a stored resource is changed only in the version that was seen. */
  readonly headers: { readonly 'if-match'?: string; readonly 'idempotency-key'?: string };
}

/** The first items that a list finds. @throws Refusal */
export const findIn = <T extends ListedType>(type: T, query: object, signal: AbortSignal) =>
  dataOf(call.GET<ListOf<T>>(lists[type], { params: { query }, signal }));

/** @throws Refusal */
export const readOne = <T extends ListedType>(type: T, id: string, signal: AbortSignal) =>
  dataOf(call.GET<OneOf<T>>(`${lists[type]}/{id}`, { params: { path: { id } }, signal }));

export function crud<T extends ListedType>(type: T) {
  const path = `${lists[type]}/{id}`;
  const reading = { follows: follows[type] };
  return {
    type,
    list: (search: SearchOf<T>) => {
      const query = { ...search, page_size: pageSize };
      return readAs<ListOf<T>>(type, lists[type], { query }, { ...reading, keepsPrevious: true });
    },
    one: (id: string) => readAs<OneOf<T>>(type, path, { path: { id } }, reading),
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

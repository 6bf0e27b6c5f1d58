/**
 * Reads of the API as queries, each by its path in the OpenAPI document, which types what it takes and answers. Not for
 * commands. A query's key is the type of resource that it is about, its path and its parameters: whoever reads the same
 * shares the answer.
 */
import { keepPreviousData, queryOptions, type QueryKey, type UseQueryOptions } from '@tanstack/react-query';
import { api, dataOf, type Answer, type Refusal } from './client.js';
import type { paths } from './openapi.gen.js';

/** `never` for a path without the method. */
export type Operation<P extends keyof paths, M extends string> = paths[P] extends Record<M, infer O> ? O : never;
type Success<O> = O extends { responses: infer R } ? R[keyof R & (200 | 201)] : never;
export type DataOf<O> = Success<O> extends { content: { 'application/json': { data: infer D } } } ? D : never;
type ParamsOf<O> = O extends { parameters: infer A } ? Pick<A, keyof A & ('path' | 'query')> : never;

/** A read, whatever its key. */
export type Query<D> = UseQueryOptions<D, Refusal>;

/** The client for paths that are known only at run time; the types above say what each takes and answers. */
export const call = api as Readonly<
  Record<'GET' | 'POST' | 'PUT' | 'DELETE', <D>(path: string, init: object) => Promise<Answer<D>>>
>;

interface Reading {
  /** Other types of resources whose changes it shows. */
  readonly follows?: 'all' | readonly string[];
  /** What was read before is shown until the next answer comes, as where a page is turned. */
  readonly keepsPrevious?: true;
  readonly enabled?: boolean;
}

/** @param type of resource, in the API's words */
export const read = <P extends keyof paths>(
  type: string,
  path: P,
  params: ParamsOf<Operation<P, 'get'>>,
  reading?: Reading,
) => readAs<DataOf<Operation<P, 'get'>>>(type, path, params, reading);

/** Like `read`, for a path that is known only at run time. */
export const readAs = <D>(type: string, path: string, params: object, reading: Reading = {}) => {
  const { follows = [], keepsPrevious, enabled } = reading;
  return queryOptions({
    queryKey: [type, path, params] as QueryKey,
    queryFn: ({ signal }) => dataOf(call.GET<D>(path, { params, signal })),
    placeholderData: keepsPrevious && keepPreviousData,
    enabled,
    meta: { follows },
  });
};

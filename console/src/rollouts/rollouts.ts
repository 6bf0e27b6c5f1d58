/** Queries and commands of rollouts. */
import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, dataOf, type Schemas } from '../shared/api/client.js';
import { pageSize } from '../shared/search.js';
import type { Step } from './steps.js';

export type Rollout = Schemas['Rollout'];
export type RolloutNode = Schemas['RolloutNode'];

interface Filters {
  readonly state?: Rollout['state'] | undefined;
  readonly node_id?: string | undefined;
  readonly page?: number | undefined;
}

/** Only defined values: the client's types tell absent from undefined. */
const given = <T extends object>(query: T) =>
  Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };

export const rolloutsQuery = (filters: Filters) =>
  queryOptions({
    queryKey: ['rollout', 'list', filters],
    queryFn: ({ signal }) =>
      dataOf(api.GET('/api/rollouts', { params: { query: { ...given(filters), page_size: pageSize } }, signal })),
    placeholderData: keepPreviousData,
    meta: { follows: ['agent'] },
  });

/** A rollout with a page of its nodes. @param wave only nodes of this wave; undefined: all */
export const rolloutQuery = (id: string, wave?: number, page?: number) =>
  queryOptions({
    queryKey: ['rollout', 'one', id, wave, page],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET('/api/rollouts/{id}', {
          params: { path: { id }, query: { ...given({ wave, page }), page_size: pageSize } },
          signal,
        }),
      ),
    placeholderData: keepPreviousData,
    meta: { follows: ['agent', 'node'] },
  });

/** @throws Refusal */
export const takeStep = (id: string, step: Step): Promise<Rollout> =>
  dataOf(api.POST(`/api/rollouts/{id}/${step}`, { params: { path: { id } } }));

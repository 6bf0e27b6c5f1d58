/** Queries and commands of rollouts. */
import { api, dataOf, type Schemas } from '../shared/api/client.js';
import { read } from '../shared/api/read.js';
import { pageSize } from '../shared/search.js';
import type { RolloutsSearch } from './rollouts-search.js';
import type { Step } from './steps.js';

export type Rollout = Schemas['Rollout'];
export type RolloutNode = Schemas['RolloutNode'];

export const rolloutsQuery = (search: RolloutsSearch) => {
  const query = { ...search, page_size: pageSize };
  return read('rollout', '/api/rollouts', { query }, { follows: ['agent'], keepsPrevious: true });
};

/** A rollout with a page of its nodes. @param wave only nodes of this wave; undefined: all */
export const rolloutQuery = (id: string, wave?: number, page?: number) => {
  const params = { path: { id }, query: { wave, page, page_size: pageSize } };
  return read('rollout', '/api/rollouts/{id}', params, { follows: ['agent', 'node'], keepsPrevious: true });
};

/** @throws Refusal */
export const takeStep = (id: string, step: Step): Promise<Rollout> =>
  dataOf(api.POST(`/api/rollouts/{id}/${step}`, { params: { path: { id } } }));

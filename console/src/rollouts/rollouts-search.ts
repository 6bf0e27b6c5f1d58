/** The search parameters of the pages of rollouts. */
import { pageOf, textOf, wordOf, type Search } from '../shared/search.js';

const states = ['running', 'baking', 'paused', 'halted', 'reverting', 'reverted', 'completed', 'cancelled'] as const;

export const rolloutsSearch = (search: Search) => ({
  state: wordOf(search, 'state', states),
  /** Only those with this node. */
  node_id: textOf(search, 'node_id'),
  page: pageOf(search),
});

export type RolloutsSearch = ReturnType<typeof rolloutsSearch>;

/** For one rollout: the wave whose nodes are listed. */
export const rolloutSearch = (search: Search) => {
  const wave = Number(search['wave']);
  return { wave: Number.isInteger(wave) && wave > 0 ? wave : undefined, page: pageOf(search) };
};

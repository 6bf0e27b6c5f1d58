/** The search parameters of the pages of listener policies: the key of a listener, in the API's words. */
import { pageOf, textOf, wordOf, type Search } from '../shared/search.js';

export const transports = ['tcp', 'udp'] as const;

export const policiesSearch = (search: Search) => ({
  /** Listeners of this node, including those without a policy. */
  node_id: textOf(search, 'node_id'),
  page: pageOf(search),
});

export const policySearch = (search: Search) => ({
  node_id: textOf(search, 'node_id'),
  transport: wordOf(search, 'transport', transports),
  listen_addr: textOf(search, 'listen_addr'),
  listen_port: textOf(search, 'listen_port'),
});

export type PolicySearch = ReturnType<typeof policySearch>;

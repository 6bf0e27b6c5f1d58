/** Queries and commands of L3 networks. */
import { queryOptions } from '@tanstack/react-query';
import { api, dataOf, type Schemas } from '../shared/api/client.js';
import { crud } from '../shared/api/crud.js';

export type L3Network = Schemas['L3Network'];
export type MemberNode = Schemas['L3NetworkNode'];

export const networks = crud('l3_network');

/** The nodes of its members, by name and status. */
export const memberNodesQuery = (id: string) =>
  queryOptions({
    queryKey: ['l3_network', 'nodes', id],
    queryFn: ({ signal }) => dataOf(api.GET('/api/l3-networks/{id}/nodes', { params: { path: { id } }, signal })),
    meta: { follows: ['node', 'agent'] },
  });

/** The names that a credential answers to, one of which a network uses. */
export const namesOfCredentialQuery = (id: string) =>
  queryOptions({
    queryKey: ['credential', 'names', id],
    queryFn: async ({ signal }) =>
      (await dataOf(api.GET('/api/credentials/{id}', { params: { path: { id } }, signal }))).server_names,
    enabled: id !== '',
  });

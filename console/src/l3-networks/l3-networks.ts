/** Queries and commands of L3 networks. */
import type { Schemas } from '../shared/api/client.js';
import { crud } from '../shared/api/crud.js';
import { read } from '../shared/api/read.js';

export type L3Network = Schemas['L3Network'];
export type MemberNode = Schemas['L3NetworkNode'];

export const networks = crud('l3_network');
const credentials = crud('credential');

/** The nodes of its members, by name and status. */
export const memberNodesQuery = (id: string) =>
  read('l3_network', '/api/l3-networks/{id}/nodes', { path: { id } }, { follows: ['node', 'agent'] });

/** The credential that a network uses. @param id empty: nothing is requested */
export const credentialQuery = (id: string) => ({ ...credentials.one(id), enabled: id !== '' });

/** Queries and commands of listener policies, which the port table holds. */
import { api, doneOf, type Done, type Schemas } from '../shared/api/client.js';
import { read } from '../shared/api/read.js';

export type Policy = Schemas['NewListenerPolicy'];
export type Listener = Schemas['Port'];
export type ListenerKey = Pick<Policy, 'nodeId' | 'transport' | 'listenAddr' | 'listenPort'>;

/** @param nodeId absent: of all nodes */
export const listenersQuery = (nodeId: string | undefined) => {
  const follows = ['l4_chain', 'route', 'l3_network', 'node', 'connectivity'];
  return read('listener_policy', '/api/nodes/ports', { query: { node_id: nodeId } }, { follows });
};

/** The id under which the audit has a policy. */
export const policyId = ({ nodeId, transport, listenAddr, listenPort }: ListenerKey): string =>
  `${nodeId}/${transport}/${listenAddr}/${listenPort}`;

export const savePolicy = (body: Policy): Promise<Done<Schemas['ListenerPolicy']>> =>
  doneOf(api.PUT('/api/nodes/ports/policies', { body }));

export const deletePolicy = (query: ListenerKey): Promise<Done<unknown>> =>
  doneOf(api.DELETE('/api/nodes/ports/policies', { params: { query } }));

/** Queries and commands of chains. */
import { queryOptions } from '@tanstack/react-query';
import { api, dataOf, doneOf, type Done, type Schemas } from '../shared/api/client.js';
import { previewOf, type RolloutPreview, type RolloutQuery } from '../shared/rollout-preview.js';
import { crud, readOne } from '../shared/api/crud.js';

export type Chain = Schemas['L4Chain'];
export type Hop = Schemas['ShownHop'];
export type Definition = Schemas['L4ChainDefinition'];
export type Deployment = Schemas['ListedDeployment'];
export type DeploymentNode = Schemas['DeploymentNode'];
export type Transport = Schemas['ChainTransport'];
export type Link = Schemas['NodeLink'];

/** Other types that the state of a chain depends on. */
const follows = ['node', 'agent', 'l4_upstream', 'credential'] as const;

export const chains = crud('l4_chain', follows);

/** Measurements of agents between the nodes of a chain. */
export const chainLinksQuery = (id: string) =>
  queryOptions({
    queryKey: ['l4_chain', 'links', id],
    queryFn: ({ signal }) => dataOf(api.GET('/api/l4-chains/{id}/links', { params: { path: { id } }, signal })),
    meta: { follows: ['agent'] },
  });

/** The node of a hop. */
export const machineQuery = (id: string) =>
  queryOptions({ queryKey: ['node', 'one', id], queryFn: ({ signal }) => readOne('node', id, signal) });

/** The listener of a hop as its agent reports it. Others may share it. */
export const listenerQuery = (hop: Hop, listens: Transport['listens'] | undefined) => {
  const { node_id, listen_addr, listen_port } = hop;
  return queryOptions({
    queryKey: ['node', 'listener', node_id, listens, listen_addr, listen_port],
    queryFn: async ({ signal }) => {
      const query = { node_id, listen_addr, listen_port, ...(listens && { transport: listens }) };
      const { nodes } = await dataOf(api.GET('/api/nodes/ports/runtime', { params: { query }, signal }));
      return nodes[0]?.listeners[0] ?? null;
    },
    enabled: listens !== undefined,
    meta: { follows: ['agent'] },
  });
};

/** How the nodes that dial an upstream see it. */
export const targetHealthQuery = (id: string | undefined) =>
  queryOptions({
    queryKey: ['l4_upstream', 'health', id],
    queryFn: ({ signal }) =>
      dataOf(api.GET('/api/l4-upstreams/{id}/health', { params: { path: { id: id ?? '' } }, signal })),
    enabled: id !== undefined,
    meta: { follows: ['agent', 'l4_chain'] },
  });

export const deploymentsQuery = (id: string) =>
  queryOptions({
    queryKey: ['l4_chain', 'deployments', id],
    queryFn: ({ signal }) => {
      const params = { path: { id }, query: { definition: true } };
      return dataOf(api.GET('/api/l4-chains/{id}/deployments', { params, signal }));
    },
    meta: { follows },
  });

/** The plan with the version of the chain, for `If-Match`. */
export const planQuery = (id: string) =>
  queryOptions({
    queryKey: ['l4_chain', 'plan', id],
    queryFn: async ({ signal }) => {
      const { data, etag } = await doneOf(api.GET('/api/l4-chains/{id}/plan', { params: { path: { id } }, signal }));
      return { ...data, etag };
    },
    meta: { follows: 'all' },
  });

/** The combinations that a hop may have: the same for every chain. */
export const transportsQuery = queryOptions({
  queryKey: ['l4_chain_transports'],
  queryFn: async ({ signal }) => (await dataOf(api.GET('/api/l4-chains/transports', { signal }))).items,
  staleTime: Infinity,
});

const anyPort = ['l4_chain', 'route', 'l3_network', 'connectivity', 'listener_policy'] as const;

export const freePortsQuery = (nodeId: string, transport: Transport['listens'] | undefined) =>
  queryOptions({
    queryKey: ['node', 'free ports', nodeId, transport],
    queryFn: async ({ signal }) => {
      const params = { path: { id: nodeId }, query: { transport: transport ?? 'tcp' } };
      return (await dataOf(api.GET('/api/nodes/{id}/free-ports', { params, signal }))).ports;
    },
    enabled: nodeId !== '' && transport !== undefined,
    meta: { follows: anyPort },
  });

/** Other listeners intended on a port of a node. */
export const portUsersQuery = (nodeId: string, transport: Transport['listens'] | undefined, port: number) =>
  queryOptions({
    queryKey: ['node', 'port users', nodeId, transport, port],
    queryFn: async ({ signal }) => {
      const query = { node_id: nodeId, listen_port: port, ...(transport && { transport }) };
      const { items } = await dataOf(api.GET('/api/nodes/ports', { params: { query }, signal }));
      return items.flatMap(({ routes }) => routes);
    },
    enabled: nodeId !== '' && transport !== undefined && port > 0 && port < 65_536,
    meta: { follows: anyPort },
  });

/** @param etag of the plan, or of the chain, that was seen */
export const deployChain = (
  id: string,
  etag: string | null,
  query: RolloutQuery = {},
): Promise<Done<Schemas['DeployedL4Chain']>> =>
  doneOf(
    api.POST('/api/l4-chains/{id}/deploy', {
      params: { path: { id }, query, header: etag === null ? {} : { 'if-match': etag } },
    }),
  );

/** The waves in which a deploy would go. @throws Refusal that it would get */
export const tryDeploy = (id: string, query: RolloutQuery, signal: AbortSignal): Promise<RolloutPreview> =>
  previewOf(
    api.POST('/api/l4-chains/{id}/deploy', { params: { path: { id }, query: { ...query, dry_run: 'true' } }, signal }),
  );

/**
 * Saves the definition of an earlier deployment, and deploys it, each under the version that was seen.
 * @throws Refusal of either
 */
export async function goBack(
  { id, version }: Chain,
  definition: Definition,
  query: RolloutQuery,
): Promise<Done<Schemas['DeployedL4Chain']>> {
  const { etag } = await chains.update(id, {
    values: definition as Schemas['L4ChainChanges'],
    headers: { 'if-match': `"${version}"` },
  });
  return deployChain(id, etag, query);
}

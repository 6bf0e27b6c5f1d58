/** Queries and commands of chains. */
import { queryOptions } from '@tanstack/react-query';
import { api, doneOf, type Done, type Schemas } from '../shared/api/client.js';
import { previewOf, type RolloutPreview, type RolloutQuery } from '../shared/rollout-preview.js';
import { crud } from '../shared/api/crud.js';
import { read } from '../shared/api/read.js';

export type Chain = Schemas['L4Chain'];
export type Hop = Schemas['ShownHop'];
export type Definition = Schemas['L4ChainDefinition'];
export type Deployment = Schemas['ListedDeployment'];
export type DeploymentNode = Schemas['DeploymentNode'];
export type Transport = Schemas['ChainTransport'];
export type Link = Schemas['NodeLink'];

/** Other types that the state of a chain depends on. */
const follows = ['node', 'agent', 'l4_upstream', 'credential'] as const;

export const chains = crud('l4_chain');
const machines = crud('node');

/** Measurements of agents between the nodes of a chain. */
export const chainLinksQuery = (id: string) =>
  read('l4_chain', '/api/l4-chains/{id}/links', { path: { id } }, { follows: ['agent'] });

/** The node of a hop. @param id empty: nothing is requested */
export const machineQuery = (id: string) => ({ ...machines.one(id), enabled: id !== '' });

/** The listener of a hop as its agent reports it. Others may share it. */
export const listenerQuery = (hop: Hop, listens: Transport['listens'] | undefined) => {
  const { node_id, listen_addr, listen_port } = hop;
  const query = { node_id, listen_addr, listen_port, transport: listens };
  const reading = { follows: ['agent'], enabled: listens !== undefined };
  return read('node', '/api/nodes/ports/runtime', { query }, reading);
};

/** How the nodes that dial an upstream see it. */
export const targetHealthQuery = (id: string | undefined) => {
  const reading = { follows: ['agent', 'l4_chain'], enabled: id !== undefined };
  return read('l4_upstream', '/api/l4-upstreams/{id}/health', { path: { id: id ?? '' } }, reading);
};

export const deploymentsQuery = (id: string) =>
  read('l4_chain', '/api/l4-chains/{id}/deployments', { path: { id }, query: { definition: true } }, { follows });

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
export const transportsQuery = {
  ...read('l4_chain_transports', '/api/l4-chains/transports', {}),
  staleTime: Infinity,
};

const anyPort = ['l4_chain', 'route', 'l3_network', 'connectivity', 'listener_policy'] as const;

export const freePortsQuery = (nodeId: string, transport: Transport['listens'] | undefined) =>
  read(
    'node',
    '/api/nodes/{id}/free-ports',
    { path: { id: nodeId }, query: { transport: transport ?? 'tcp' } },
    { follows: anyPort, enabled: nodeId !== '' && transport !== undefined },
  );

/** The listeners intended on a port of a node. */
export const portUsersQuery = (nodeId: string, transport: Transport['listens'] | undefined, port: number) => {
  const enabled = nodeId !== '' && transport !== undefined && port > 0 && port < 65_536;
  const query = { node_id: nodeId, listen_port: port, transport };
  return read('node', '/api/nodes/ports', { query }, { follows: anyPort, enabled });
};

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

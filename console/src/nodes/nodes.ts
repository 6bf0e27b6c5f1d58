/** Queries and commands of nodes. */
import { queryOptions } from '@tanstack/react-query';
import { api, dataOf, doneOf, type Done, type Schemas } from '../shared/api/client.js';
import { crud, findIn } from '../shared/api/crud.js';
import { read } from '../shared/api/read.js';
import { largestPage } from '../shared/search.js';

export type Node = Schemas['Node'];
export type NodeConfig = Schemas['NodeSnapshot'];
export type CreatedNode = Schemas['CreatedNode'];
export type AgentCommand = Schemas['NewAgentCommand']['command'];

/** Types of resources that intend something on a node. */
const intents = ['l4_chain', 'route', 'l3_network'];

const pathOf = (id: string) => ({ path: { id } });

export const nodes = crud('node');

/** The resources that refer to the node. */
export const referrersQuery = (id: string) =>
  read('node', '/api/nodes/{id}/referrers', pathOf(id), { follows: intents });

export const linksQuery = (id: string) => read('node', '/api/nodes/{id}/links', pathOf(id), { follows: intents });

/** The listeners that are intended, each with the state that was reported last. */
export const intendedQuery = (id: string) => {
  const follows = ['agent', 'listener_policy', ...intents];
  return read('node', '/api/nodes/ports', { query: { node_id: id } }, { follows });
};

/** The listeners that run, and are in a deployed definition, or in none. */
export const runtimeQuery = (id: string, intended: boolean) => {
  const query = { node_id: id, intended };
  return read('node', '/api/nodes/ports/runtime', { query }, { follows: ['agent', ...intents] });
};

export const commandsQuery = (id: string) =>
  read('node', '/api/nodes/{id}/commands', pathOf(id), { follows: ['agent'] });

/** @param generation undefined for the newest */
export const configQuery = (id: string, generation: number | undefined) => {
  const follows = ['credential', 'l4_upstream', 'listener_policy', 'connectivity', ...intents];
  const params = { ...pathOf(id), query: { generation } };
  return read('node', '/api/nodes/{id}/config', params, { follows, keepsPrevious: true });
};

/** The chains over a node, by their id. */
export const chainsQuery = (id: string) =>
  queryOptions({
    queryKey: ['node', 'chains', id],
    queryFn: async ({ signal }): Promise<ReadonlyMap<string, Schemas['L4Chain']>> => {
      const { items } = await findIn('l4_chain', { node_id: id, page_size: largestPage }, signal);
      return new Map(items.map((chain) => [chain.id, chain]));
    },
    meta: { follows: ['l4_chain'] },
  });

export const controlEndpointQuery = read('control endpoint', '/api/nodes/control-endpoint', {});

export const issuePsk = (id: string): Promise<Pick<Schemas['NodePsk'], 'control_psk'>> =>
  dataOf(api.POST('/api/nodes/{id}/psk', { params: pathOf(id) }));

export type MadeCandidate = Schemas['NodePskCandidate'];

/** A second PSK beside the first. @throws Refusal */
export const makeCandidate = (id: string, days: number): Promise<MadeCandidate> =>
  dataOf(
    api.POST('/api/nodes/{id}/psk', { params: { ...pathOf(id), query: { mode: 'candidate', valid_days: days } } }),
  ) as Promise<MadeCandidate>;

/** Takes the second PSK back. @throws Refusal */
export const dropCandidate = (id: string): Promise<Done<unknown>> =>
  doneOf(api.DELETE('/api/nodes/{id}/psk/candidate', { params: pathOf(id) }));

export const sendCommand = (id: string, command: AgentCommand): Promise<unknown> =>
  dataOf(api.POST('/api/nodes/{id}/commands', { params: pathOf(id), body: { command } }));

/** A new generation, pushed to a connected agent. */
export const refreshConfig = (id: string): Promise<Schemas['RefreshedNode']> =>
  dataOf(api.POST('/api/nodes/{id}/config', { params: pathOf(id) }));

/** One command with one audit entry, like the next. @throws Refusal */
export const labelNodes = (body: Schemas['LabelsOfNodes']): Promise<Schemas['LabelledNodes']> =>
  dataOf(api.POST('/api/nodes/labels', { body }));

export const sendCommands = (body: Schemas['CommandOfNodes']): Promise<unknown> =>
  dataOf(api.POST('/api/nodes/commands', { body }));

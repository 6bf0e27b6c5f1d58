/** What the console asks about nodes and does with them. */
import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, dataOf, doneOf } from '../shared/api/client.js';
import type { Done, Schemas } from '../shared/api/client.js';
import type { Save } from '../shared/forms/resource-form.js';
import { pageSize } from '../shared/ui/data-table.js';
import type { NodesSearch } from './nodes-search.js';

export type Node = Schemas['Node'];
export type CreatedNode = Schemas['CreatedNode'];
export type AgentCommand = Schemas['NewAgentCommand']['command'];

/** What may be intended on a node. */
const intents = ['l4_chain', 'route', 'l3_network'];

const pathOf = (id: string) => ({ path: { id } });

export const nodesQuery = ({ label, ...search }: NodesSearch, size = pageSize) =>
  queryOptions({
    queryKey: ['node', 'list', search, label, size],
    queryFn: ({ signal }) => {
      const query = { ...search, ...(label && { label: [...label] }), page_size: size };
      return dataOf(api.GET('/api/nodes', { params: { query }, signal }));
    },
    placeholderData: keepPreviousData,
    meta: { follows: ['agent', ...intents] },
  });

export const nodeQuery = (id: string) =>
  queryOptions({
    queryKey: ['node', 'one', id],
    queryFn: ({ signal }) => dataOf(api.GET('/api/nodes/{id}', { params: pathOf(id), signal })),
    meta: { follows: ['agent', 'connectivity', ...intents] },
  });

/** What names the node. */
export const referrersQuery = (id: string) =>
  queryOptions({
    queryKey: ['node', 'referrers', id],
    queryFn: ({ signal }) => dataOf(api.GET('/api/nodes/{id}/referrers', { params: pathOf(id), signal })),
    meta: { follows: intents },
  });

export const linksQuery = (id: string) =>
  queryOptions({
    queryKey: ['node', 'links', id],
    queryFn: ({ signal }) => dataOf(api.GET('/api/nodes/{id}/links', { params: pathOf(id), signal })),
    meta: { follows: intents },
  });

/** The listeners that are intended, each with the state that was reported last. */
export const intendedQuery = (id: string) =>
  queryOptions({
    queryKey: ['node', 'ports', id],
    queryFn: ({ signal }) => dataOf(api.GET('/api/nodes/ports', { params: { query: { node_id: id } }, signal })),
    meta: { follows: ['agent', 'listener_policy', ...intents] },
  });

/** The listeners that run although nothing that is deployed has them. */
export const unexpectedQuery = (id: string) =>
  queryOptions({
    queryKey: ['node', 'unexpected', id],
    queryFn: ({ signal }) =>
      dataOf(api.GET('/api/nodes/ports/runtime', { params: { query: { node_id: id, intended: false } }, signal })),
    meta: { follows: ['agent', ...intents] },
  });

export const commandsQuery = (id: string) =>
  queryOptions({
    queryKey: ['node', 'commands', id],
    queryFn: ({ signal }) => dataOf(api.GET('/api/nodes/{id}/commands', { params: pathOf(id), signal })),
    meta: { follows: ['agent'] },
  });

/** @param generation undefined for the newest */
export const configQuery = (id: string, generation: number | undefined) =>
  queryOptions({
    queryKey: ['node', 'config', id, generation],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET('/api/nodes/{id}/config', {
          params: { ...pathOf(id), ...(generation !== undefined && { query: { generation } }) },
          signal,
        }),
      ),
    placeholderData: keepPreviousData,
    meta: { follows: ['credential', 'l4_upstream', 'listener_policy', 'connectivity', ...intents] },
  });

export const controlEndpointQuery = queryOptions({
  queryKey: ['control endpoint'],
  queryFn: ({ signal }) => dataOf(api.GET('/api/nodes/control-endpoint', { signal })),
});

export const createNode = ({ values, headers: header }: Save<Schemas['NewNode']>): Promise<Done<CreatedNode>> =>
  doneOf(api.POST('/api/nodes', { params: { header }, body: values as Schemas['NewNode'] }));

export const updateNode = (
  id: string,
  { values, headers: header }: Save<Schemas['NodeChanges']>,
): Promise<Done<Node>> => doneOf(api.PUT('/api/nodes/{id}', { params: { ...pathOf(id), header }, body: values }));

export const deleteNode = (id: string): Promise<Done<unknown>> =>
  doneOf(api.DELETE('/api/nodes/{id}', { params: pathOf(id) }));

export const issuePsk = (id: string): Promise<Schemas['NodePsk']> =>
  dataOf(api.POST('/api/nodes/{id}/psk', { params: pathOf(id) }));

export const sendCommand = (id: string, command: AgentCommand): Promise<unknown> =>
  dataOf(api.POST('/api/nodes/{id}/commands', { params: pathOf(id), body: { command } }));

/** A new generation, pushed to a connected agent. */
export const refreshConfig = (id: string): Promise<Schemas['RefreshedNode']> =>
  dataOf(api.POST('/api/nodes/{id}/config', { params: pathOf(id) }));

/** The name of a resource that something else refers to by its id. */
import { queryOptions } from '@tanstack/react-query';
import { api, dataOf } from './api/client.js';

export interface Named {
  readonly id: string;
  readonly name: string;
}

/** What others refer to. */
const namedTypes = ['node', 'l4_chain', 'l4_upstream', 'credential', 'route', 'l3_network', 'user'] as const;
export type NamedType = (typeof namedTypes)[number];

/** Whether one of a type can be looked up. */
export const isNamedType = (type: string): type is NamedType => namedTypes.some((one) => one === type);

async function get(type: NamedType, id: string, signal: AbortSignal): Promise<Named> {
  const options = { params: { path: { id } }, signal };
  switch (type) {
    case 'node':
      return dataOf(api.GET('/api/nodes/{id}', options));
    case 'l4_chain':
      return dataOf(api.GET('/api/l4-chains/{id}', options));
    case 'route':
      return dataOf(api.GET('/api/routes/{id}', options));
    case 'l3_network':
      return dataOf(api.GET('/api/l3-networks/{id}', options));
    case 'l4_upstream':
      return dataOf(api.GET('/api/l4-upstreams/{id}', options));
    case 'credential':
      return dataOf(api.GET('/api/credentials/{id}', options));
    case 'user':
      return { id, name: (await dataOf(api.GET('/api/auth/users/{id}', options))).username };
    default:
      return type satisfies never;
  }
}

/** @param id empty for none, which is not asked for */
export const namedQuery = (type: NamedType, id: string) =>
  queryOptions({
    queryKey: [type, 'named', id],
    queryFn: ({ signal }) => get(type, id, signal),
    enabled: id !== '',
  });

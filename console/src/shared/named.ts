/** The name of a resource that something else refers to by its id. */
import { queryOptions } from '@tanstack/react-query';
import { api, dataOf } from './api/client.js';

export interface Named {
  readonly id: string;
  readonly name: string;
}

/** What others refer to. */
export type NamedType = 'node' | 'l4_upstream' | 'credential' | 'user';

async function get(type: NamedType, id: string, signal: AbortSignal): Promise<Named> {
  const options = { params: { path: { id } }, signal };
  switch (type) {
    case 'node':
      return dataOf(api.GET('/api/nodes/{id}', options));
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

/** Queries and commands of HTTP routes. */
import { queryOptions } from '@tanstack/react-query';
import { api, dataOf, type Schemas } from '../shared/api/client.js';
import { crud } from '../shared/api/crud.js';

export type Route = Schemas['Route'];
export type RouteHop = Schemas['RouteHopView'];

export const routes = crud('route');

/** The hops with the nodes that they are on, and where each sends what it gets. */
export const routeHopsQuery = (id: string) =>
  queryOptions({
    queryKey: ['route', 'hops', id],
    queryFn: ({ signal }) => dataOf(api.GET('/api/routes/{id}/hops', { params: { path: { id } }, signal })),
    meta: { follows: ['node', 'agent'] },
  });

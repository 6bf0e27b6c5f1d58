/** What the console asks about HTTP routes and does with them. */
import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, dataOf, doneOf } from '../shared/api/client.js';
import type { Done, Schemas } from '../shared/api/client.js';
import type { Save } from '../shared/forms/resource-form.js';
import type { ListSearch } from '../shared/search.js';
import { pageSize } from '../shared/ui/data-table.js';

export type Route = Schemas['Route'];
export type RouteHop = Schemas['RouteHopView'];

export const routesQuery = ({ q, sort, page }: ListSearch) =>
  queryOptions({
    queryKey: ['route', 'list', q, sort, page],
    queryFn: ({ signal }) =>
      dataOf(api.GET('/api/routes', { params: { query: { q, sort, page, page_size: pageSize } }, signal })),
    placeholderData: keepPreviousData,
  });

export const routeQuery = (id: string) =>
  queryOptions({
    queryKey: ['route', 'one', id],
    queryFn: ({ signal }) => dataOf(api.GET('/api/routes/{id}', { params: { path: { id } }, signal })),
  });

/** The hops with the nodes that they are on, and where each sends what it gets. */
export const routeHopsQuery = (id: string) =>
  queryOptions({
    queryKey: ['route', 'hops', id],
    queryFn: ({ signal }) => dataOf(api.GET('/api/routes/{id}/hops', { params: { path: { id } }, signal })),
    meta: { follows: ['node', 'agent'] },
  });

export const createRoute = ({ values, headers: header }: Save<Schemas['NewRoute']>): Promise<Done<Route>> =>
  doneOf(api.POST('/api/routes', { params: { header }, body: values as Schemas['NewRoute'] }));

export const updateRoute = (
  id: string,
  { values: body, headers: header }: Save<Schemas['RouteChanges']>,
): Promise<Done<Route>> => doneOf(api.PUT('/api/routes/{id}', { params: { path: { id }, header }, body }));

export const deleteRoute = (id: string): Promise<Done<unknown>> =>
  doneOf(api.DELETE('/api/routes/{id}', { params: { path: { id } } }));

/** Queries and commands of HTTP routes. */
import type { Schemas } from '../shared/api/client.js';
import { crud } from '../shared/api/crud.js';
import { read } from '../shared/api/read.js';

export type Route = Schemas['Route'];
export type RouteHop = Schemas['RouteHopView'];

export const routes = crud('route');

/** The hops with the nodes that they are on, and where each sends what it gets. */
export const routeHopsQuery = (id: string) =>
  read('route', '/api/routes/{id}/hops', { path: { id } }, { follows: ['node', 'agent'] });

/** The routes of each resource of the fleet. A resource without routes does not compile. */
import type { ResourceType } from '../../domain/fleet/resources.js';
import { chainRoutes } from './chains.js';
import { credentialRoutes } from './credentials.js';
import { deploymentRoutes } from './deployments.js';
import type { RestApp, RestDeps } from './deps.js';
import { listenerPolicyRoutes } from './listener-policies.js';
import { l3NetworkRoutes } from './l3-networks.js';
import { nodeCommandRoutes } from './node-commands.js';
import { nodeConfigRoutes } from './node-config.js';
import { nodeRoutes } from './nodes.js';
import { routeRoutes } from './routes.js';
import { upstreamRoutes } from './upstreams.js';

type Routes = (app: RestApp, deps: RestDeps) => void;

const allOf =
  (...routes: readonly Routes[]): Routes =>
  (app, deps) => {
    for (const add of routes) add(app, deps);
  };

export const routesOfResources: { readonly [T in ResourceType]: Routes } = {
  node: allOf(nodeRoutes, nodeCommandRoutes, nodeConfigRoutes),
  l4_upstream: upstreamRoutes,
  credential: credentialRoutes,
  l4_chain: allOf(chainRoutes, deploymentRoutes),
  route: routeRoutes,
  listener_policy: listenerPolicyRoutes,
  l3_network: l3NetworkRoutes,
};

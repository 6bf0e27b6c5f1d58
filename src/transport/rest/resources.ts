/** The routes of each resource of the fleet. A resource without routes does not compile. */
import type { ResourceType } from '../../domain/fleet/resources.js';
import { chainRoutes } from './resources/chains.js';
import { chainTransportRoutes, freePortRoutes } from './resources/chain-choices.js';
import { chainHistoryRoutes, nodeHistoryRoutes, upstreamHistoryRoutes } from './resources/history.js';
import { credentialRoutes } from './resources/credentials.js';
import { deploymentRoutes } from './resources/deployments.js';
import type { RestApp, RestDeps, RestOptions } from './deps.js';
import { joinTokenRoutes } from './resources/join-tokens.js';
import { listenerPolicyRoutes } from './resources/listener-policies.js';
import { l3NetworkRoutes } from './resources/l3-networks.js';
import { nodeBulkRoutes } from './resources/node-bulk.js';
import { nodeCommandRoutes } from './resources/node-commands.js';
import { nodeConfigRoutes } from './resources/node-config.js';
import { nodeMetricsRoutes, upstreamHealthRoutes } from './resources/node-metrics.js';
import { nodePskRoutes } from './resources/node-psks.js';
import { nodeRoutes } from './resources/nodes.js';
import { legacyRouteRoutes } from './resources/routes.js';
import { rolloutPolicyRoutes } from './resources/rollout-policies.js';
import { rolloutRoutes } from './resources/rollouts.js';
import { upstreamRoutes } from './resources/upstreams.js';
import { webhookRoutes } from './resources/webhooks.js';

type Routes = (app: RestApp, deps: RestDeps, options: RestOptions) => void;

const allOf =
  (...routes: readonly Routes[]): Routes =>
  (app, deps, options) => {
    for (const add of routes) add(app, deps, options);
  };

export const routesOfResources: { readonly [T in ResourceType]: Routes } = {
  node: allOf(
    nodeRoutes,
    nodePskRoutes,
    nodeBulkRoutes,
    nodeCommandRoutes,
    nodeConfigRoutes,
    nodeMetricsRoutes,
    nodeHistoryRoutes,
    freePortRoutes,
  ),
  l4_upstream: allOf(upstreamRoutes, upstreamHealthRoutes, upstreamHistoryRoutes),
  credential: credentialRoutes,
  l4_chain: allOf(chainRoutes, chainTransportRoutes, deploymentRoutes, chainHistoryRoutes),
  route: legacyRouteRoutes,
  listener_policy: listenerPolicyRoutes,
  l3_network: l3NetworkRoutes,
  webhook: webhookRoutes,
  rollout_policy: rolloutPolicyRoutes,
  rollout: rolloutRoutes,
  // Confirmations are shown with their audit entries.
  confirmation: () => undefined,
  join_token: joinTokenRoutes,
};

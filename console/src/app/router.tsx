/**
 * Every page and its address. A page is a part of its own that loads when it is opened; what its address may hold is
 * read by a small function that comes with the first load.
 */
import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from '@tanstack/react-router';
import { auditSearch } from '../audit/audit-search.js';
import { chainFormSearch, chainsSearch } from '../chains/chains-search.js';
import { upstreamsSearch } from '../upstreams/upstreams-search.js';
import { credentialsSearch, newCredentialSearch } from '../credentials/credentials-search.js';
import { policiesSearch, policySearch } from '../listener-policies/listener-policies-search.js';
import { nodeConfigSearch, nodesSearch } from '../nodes/nodes-search.js';
import { portsSearch } from '../ports/ports-search.js';
import { anySearch, listSearch } from '../shared/search.js';
import { Failed } from './failed.js';
import { NotFound } from './not-found.js';
import { parseSearch, stringifySearch } from './search.js';
import { topologySearch } from '../topology/topology-search.js';
import { Shell } from './shell.js';

const root = createRootRoute({ validateSearch: anySearch, component: Shell, notFoundComponent: NotFound });
const at = { getParentRoute: () => root } as const;

const routeTree = root.addChildren([
  createRoute({
    ...at,
    path: '/',
    component: lazyRouteComponent(() => import('../overview/overview-page.js'), 'OverviewPage'),
  }),
  createRoute({
    ...at,
    path: '/nodes',
    validateSearch: nodesSearch,
    component: lazyRouteComponent(() => import('../nodes/nodes-page.js'), 'NodesPage'),
  }),
  createRoute({
    ...at,
    path: '/nodes/new',
    component: lazyRouteComponent(() => import('../nodes/node-form-page.js'), 'NewNodePage'),
  }),
  createRoute({
    ...at,
    path: '/nodes/$id/edit',
    component: lazyRouteComponent(() => import('../nodes/node-form-page.js'), 'EditNodePage'),
  }),
  createRoute({
    ...at,
    path: '/nodes/$id/config',
    validateSearch: nodeConfigSearch,
    component: lazyRouteComponent(() => import('../nodes/node-config-page.js'), 'NodeConfigPage'),
  }),
  createRoute({
    ...at,
    path: '/nodes/$id',
    component: lazyRouteComponent(() => import('../nodes/node-page.js'), 'NodePage'),
  }),
  createRoute({
    ...at,
    path: '/chains',
    validateSearch: chainsSearch,
    component: lazyRouteComponent(() => import('../chains/chains-page.js'), 'ChainsPage'),
  }),
  createRoute({
    ...at,
    path: '/chains/new',
    component: lazyRouteComponent(() => import('../chains/chain-form-page.js'), 'NewChainPage'),
  }),
  createRoute({
    ...at,
    path: '/chains/$id',
    component: lazyRouteComponent(() => import('../chains/chain-page.js'), 'ChainPage'),
  }),
  createRoute({
    ...at,
    path: '/chains/$id/edit',
    validateSearch: chainFormSearch,
    component: lazyRouteComponent(() => import('../chains/chain-form-page.js'), 'EditChainPage'),
  }),
  createRoute({
    ...at,
    path: '/upstreams',
    validateSearch: upstreamsSearch,
    component: lazyRouteComponent(() => import('../upstreams/upstreams-page.js'), 'UpstreamsPage'),
  }),
  createRoute({
    ...at,
    path: '/upstreams/new',
    component: lazyRouteComponent(() => import('../upstreams/upstream-form-page.js'), 'NewUpstreamPage'),
  }),
  createRoute({
    ...at,
    path: '/upstreams/$id',
    component: lazyRouteComponent(() => import('../upstreams/upstream-page.js'), 'UpstreamPage'),
  }),
  createRoute({
    ...at,
    path: '/upstreams/$id/edit',
    component: lazyRouteComponent(() => import('../upstreams/upstream-form-page.js'), 'EditUpstreamPage'),
  }),
  createRoute({
    ...at,
    path: '/credentials',
    validateSearch: credentialsSearch,
    component: lazyRouteComponent(() => import('../credentials/credentials-page.js'), 'CredentialsPage'),
  }),
  createRoute({
    ...at,
    path: '/credentials/new',
    validateSearch: newCredentialSearch,
    component: lazyRouteComponent(() => import('../credentials/credential-form-page.js'), 'NewCredentialPage'),
  }),
  createRoute({
    ...at,
    path: '/credentials/$id',
    component: lazyRouteComponent(() => import('../credentials/credential-page.js'), 'CredentialPage'),
  }),
  createRoute({
    ...at,
    path: '/credentials/$id/edit',
    component: lazyRouteComponent(() => import('../credentials/credential-form-page.js'), 'EditCredentialPage'),
  }),
  createRoute({
    ...at,
    path: '/credentials/$id/rotate',
    component: lazyRouteComponent(() => import('../credentials/credential-form-page.js'), 'RotateCredentialPage'),
  }),
  createRoute({
    ...at,
    path: '/tokens',
    validateSearch: listSearch,
    component: lazyRouteComponent(() => import('../tokens/tokens-page.js'), 'TokensPage'),
  }),
  createRoute({
    ...at,
    path: '/tokens/new',
    component: lazyRouteComponent(() => import('../tokens/new-token-page.js'), 'NewTokenPage'),
  }),
  createRoute({
    ...at,
    path: '/tokens/$id',
    component: lazyRouteComponent(() => import('../tokens/token-page.js'), 'TokenPage'),
  }),
  createRoute({
    ...at,
    path: '/users',
    validateSearch: listSearch,
    component: lazyRouteComponent(() => import('../users/users-page.js'), 'UsersPage'),
  }),
  createRoute({
    ...at,
    path: '/users/new',
    component: lazyRouteComponent(() => import('../users/user-form-page.js'), 'NewUserPage'),
  }),
  createRoute({
    ...at,
    path: '/users/$id',
    component: lazyRouteComponent(() => import('../users/user-page.js'), 'UserPage'),
  }),
  createRoute({
    ...at,
    path: '/users/$id/password',
    component: lazyRouteComponent(() => import('../users/user-form-page.js'), 'ResetPasswordPage'),
  }),
  createRoute({
    ...at,
    path: '/account',
    component: lazyRouteComponent(() => import('../account/account-page.js'), 'AccountPage'),
  }),
  createRoute({
    ...at,
    path: '/webhooks',
    validateSearch: listSearch,
    component: lazyRouteComponent(() => import('../webhooks/webhooks-page.js'), 'WebhooksPage'),
  }),
  createRoute({
    ...at,
    path: '/webhooks/new',
    component: lazyRouteComponent(() => import('../webhooks/webhook-form-page.js'), 'NewWebhookPage'),
  }),
  createRoute({
    ...at,
    path: '/webhooks/$id',
    component: lazyRouteComponent(() => import('../webhooks/webhook-page.js'), 'WebhookPage'),
  }),
  createRoute({
    ...at,
    path: '/webhooks/$id/edit',
    component: lazyRouteComponent(() => import('../webhooks/webhook-form-page.js'), 'EditWebhookPage'),
  }),
  createRoute({
    ...at,
    path: '/settings',
    component: lazyRouteComponent(() => import('../settings/settings-page.js'), 'SettingsPage'),
  }),
  createRoute({
    ...at,
    path: '/settings/edit',
    component: lazyRouteComponent(() => import('../settings/settings-form-page.js'), 'EditSettingsPage'),
  }),
  createRoute({
    ...at,
    path: '/routes',
    validateSearch: listSearch,
    component: lazyRouteComponent(() => import('../routes/routes-page.js'), 'RoutesPage'),
  }),
  createRoute({
    ...at,
    path: '/routes/new',
    component: lazyRouteComponent(() => import('../routes/route-form-page.js'), 'NewRoutePage'),
  }),
  createRoute({
    ...at,
    path: '/routes/$id',
    component: lazyRouteComponent(() => import('../routes/route-page.js'), 'RoutePage'),
  }),
  createRoute({
    ...at,
    path: '/routes/$id/edit',
    component: lazyRouteComponent(() => import('../routes/route-form-page.js'), 'EditRoutePage'),
  }),
  createRoute({
    ...at,
    path: '/fleet-file',
    component: lazyRouteComponent(() => import('../fleet-file/fleet-file-page.js'), 'FleetFilePage'),
  }),
  createRoute({
    ...at,
    path: '/l3-networks',
    validateSearch: listSearch,
    component: lazyRouteComponent(() => import('../l3-networks/l3-networks-page.js'), 'L3NetworksPage'),
  }),
  createRoute({
    ...at,
    path: '/l3-networks/new',
    component: lazyRouteComponent(() => import('../l3-networks/l3-network-form-page.js'), 'NewL3NetworkPage'),
  }),
  createRoute({
    ...at,
    path: '/l3-networks/$id',
    component: lazyRouteComponent(() => import('../l3-networks/l3-network-page.js'), 'L3NetworkPage'),
  }),
  createRoute({
    ...at,
    path: '/l3-networks/$id/edit',
    component: lazyRouteComponent(() => import('../l3-networks/l3-network-form-page.js'), 'EditL3NetworkPage'),
  }),
  createRoute({
    ...at,
    path: '/listener-policies',
    validateSearch: policiesSearch,
    component: lazyRouteComponent(
      () => import('../listener-policies/listener-policies-page.js'),
      'ListenerPoliciesPage',
    ),
  }),
  createRoute({
    ...at,
    path: '/listener-policies/edit',
    validateSearch: policySearch,
    component: lazyRouteComponent(
      () => import('../listener-policies/listener-policy-form-page.js'),
      'ListenerPolicyFormPage',
    ),
  }),
  createRoute({
    ...at,
    path: '/fleet-file/sets/$set',
    component: lazyRouteComponent(() => import('../fleet-file/set-page.js'), 'SetPage'),
  }),
  createRoute({
    ...at,
    path: '/fleet-file/applies/$id',
    component: lazyRouteComponent(() => import('../fleet-file/apply-page.js'), 'ApplyPage'),
  }),
  createRoute({
    ...at,
    path: '/ports',
    validateSearch: portsSearch,
    component: lazyRouteComponent(() => import('../ports/ports-page.js'), 'PortsPage'),
  }),
  createRoute({
    ...at,
    path: '/topology',
    validateSearch: topologySearch,
    component: lazyRouteComponent(() => import('../topology/topology-page.js'), 'TopologyPage'),
  }),
  createRoute({
    ...at,
    path: '/audit',
    validateSearch: auditSearch,
    component: lazyRouteComponent(() => import('../audit/audit-page.js'), 'AuditPage'),
  }),
]);

export const router = createRouter({
  routeTree,
  basepath: '/console',
  parseSearch,
  stringifySearch,
  defaultPreload: 'intent',
  defaultErrorComponent: Failed,
  scrollRestoration: true,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}

/**
 * Every page and its address. A page is a chunk of its own, which loads when it is opened; the small function that
 * reads its search parameters comes with the first load.
 */
import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  type SearchSchemaInput,
} from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { auditSearch } from '../audit/audit-search.js';
import { chainFormSearch, chainsSearch } from '../chains/chains-search.js';
import { upstreamsSearch } from '../upstreams/upstreams-search.js';
import { credentialsSearch, newCredentialSearch } from '../credentials/credentials-search.js';
import { policiesSearch, policySearch } from '../listener-policies/listener-policies-search.js';
import { incidentSearch, incidentsSearch } from '../incidents/incidents-search.js';
import { nodeConfigSearch, nodesSearch } from '../nodes/nodes-search.js';
import { portsSearch } from '../ports/ports-search.js';
import { rolloutSearch, rolloutsSearch } from '../rollouts/rollouts-search.js';
import { anySearch, listSearch, type Search } from '../shared/search.js';
import { Failed, notLoaded } from './failed.js';
import { PageSkeleton } from '../shared/ui/page-skeleton.js';
import { NotFound } from './not-found.js';
import { parseSearch, stringifySearch } from './search.js';
import { topologySearch } from '../topology/topology-search.js';
import { Shell } from './shell.js';

/** Reads the search parameters of an address; a link may leave any of them out. */
const reading =
  <S extends object>(read: (search: Search) => S) =>
  (given: Partial<S> & SearchSchemaInput): S =>
    read(given);

const root = createRootRoute({ validateSearch: reading(anySearch), component: Shell, notFoundComponent: NotFound });

/** A page by its address. @param read reads the search parameters besides those that every page has */
function page<P extends string, M extends Record<K, () => ReactNode>, K extends string, S extends object = object>(
  path: P,
  load: () => Promise<M>,
  name: K,
  read: (search: Search) => S = () => ({}) as S,
) {
  const component = lazyRouteComponent<M, K>(() => load().catch(notLoaded), name);
  return createRoute({ getParentRoute: () => root, path, validateSearch: reading(read), component });
}

const routeTree = root.addChildren([
  page('/', () => import('../overview/overview-page.js'), 'OverviewPage'),
  page('/nodes', () => import('../nodes/nodes-page.js'), 'NodesPage', nodesSearch),
  page('/nodes/new', () => import('../nodes/node-form-page.js'), 'NewNodePage'),
  page('/nodes/$id/edit', () => import('../nodes/node-form-page.js'), 'EditNodePage'),
  page('/nodes/$id/config', () => import('../nodes/node-config-page.js'), 'NodeConfigPage', nodeConfigSearch),
  page('/nodes/$id/psk', () => import('../nodes/psk-page.js'), 'PskPage'),
  page('/nodes/$id', () => import('../nodes/node-page.js'), 'NodePage'),
  page('/chains', () => import('../chains/chains-page.js'), 'ChainsPage', chainsSearch),
  page('/chains/new', () => import('../chains/chain-form-page.js'), 'NewChainPage'),
  page('/chains/$id', () => import('../chains/chain-page.js'), 'ChainPage'),
  page('/chains/$id/edit', () => import('../chains/chain-form-page.js'), 'EditChainPage', chainFormSearch),
  page('/upstreams', () => import('../upstreams/upstreams-page.js'), 'UpstreamsPage', upstreamsSearch),
  page('/upstreams/new', () => import('../upstreams/upstream-form-page.js'), 'NewUpstreamPage'),
  page('/upstreams/$id', () => import('../upstreams/upstream-page.js'), 'UpstreamPage'),
  page('/upstreams/$id/edit', () => import('../upstreams/upstream-form-page.js'), 'EditUpstreamPage'),
  page('/credentials', () => import('../credentials/credentials-page.js'), 'CredentialsPage', credentialsSearch),
  page(
    '/credentials/new',
    () => import('../credentials/credential-form-page.js'),
    'NewCredentialPage',
    newCredentialSearch,
  ),
  page('/credentials/$id', () => import('../credentials/credential-page.js'), 'CredentialPage'),
  page('/credentials/$id/edit', () => import('../credentials/credential-form-page.js'), 'EditCredentialPage'),
  page('/credentials/$id/rotate', () => import('../credentials/credential-form-page.js'), 'RotateCredentialPage'),
  page('/tokens', () => import('../tokens/tokens-page.js'), 'TokensPage', listSearch),
  page('/tokens/new', () => import('../tokens/new-token-page.js'), 'NewTokenPage'),
  page('/tokens/$id', () => import('../tokens/token-page.js'), 'TokenPage'),
  page('/join-tokens', () => import('../join-tokens/join-tokens-page.js'), 'JoinTokensPage', listSearch),
  page('/join-tokens/new', () => import('../join-tokens/add-machines-page.js'), 'AddMachinesPage'),
  page('/join-tokens/$id', () => import('../join-tokens/join-token-page.js'), 'JoinTokenPage'),
  page('/users', () => import('../users/users-page.js'), 'UsersPage', listSearch),
  page('/users/new', () => import('../users/user-form-page.js'), 'NewUserPage'),
  page('/users/$id', () => import('../users/user-page.js'), 'UserPage'),
  page('/users/$id/password', () => import('../users/user-form-page.js'), 'ResetPasswordPage'),
  page('/account', () => import('../account/account-page.js'), 'AccountPage'),
  page('/webhooks', () => import('../webhooks/webhooks-page.js'), 'WebhooksPage', listSearch),
  page('/webhooks/new', () => import('../webhooks/webhook-form-page.js'), 'NewWebhookPage'),
  page('/webhooks/$id', () => import('../webhooks/webhook-page.js'), 'WebhookPage'),
  page('/webhooks/$id/edit', () => import('../webhooks/webhook-form-page.js'), 'EditWebhookPage'),
  page('/settings', () => import('../settings/settings-page.js'), 'SettingsPage'),
  page('/settings/identity', () => import('../service/identity-page.js'), 'IdentityPage'),
  page('/settings/edit', () => import('../settings/settings-form-page.js'), 'EditSettingsPage'),
  page('/routes', () => import('../routes/routes-page.js'), 'RoutesPage', listSearch),
  page('/routes/new', () => import('../routes/route-form-page.js'), 'NewRoutePage'),
  page('/routes/$id', () => import('../routes/route-page.js'), 'RoutePage'),
  page('/routes/$id/edit', () => import('../routes/route-form-page.js'), 'EditRoutePage'),
  page('/rollouts', () => import('../rollouts/rollouts-page.js'), 'RolloutsPage', rolloutsSearch),
  page('/rollouts/$id', () => import('../rollouts/rollout-page.js'), 'RolloutPage', rolloutSearch),
  page(
    '/rollout-policies',
    () => import('../rollout-policies/rollout-policies-page.js'),
    'RolloutPoliciesPage',
    listSearch,
  ),
  page(
    '/rollout-policies/new',
    () => import('../rollout-policies/rollout-policy-form-page.js'),
    'NewRolloutPolicyPage',
  ),
  page('/rollout-policies/$id', () => import('../rollout-policies/rollout-policy-page.js'), 'RolloutPolicyPage'),
  page(
    '/rollout-policies/$id/edit',
    () => import('../rollout-policies/rollout-policy-form-page.js'),
    'EditRolloutPolicyPage',
  ),
  page('/fleet-file', () => import('../fleet-file/fleet-file-page.js'), 'FleetFilePage'),
  page('/l3-networks', () => import('../l3-networks/l3-networks-page.js'), 'L3NetworksPage', listSearch),
  page('/l3-networks/new', () => import('../l3-networks/l3-network-form-page.js'), 'NewL3NetworkPage'),
  page('/l3-networks/$id', () => import('../l3-networks/l3-network-page.js'), 'L3NetworkPage'),
  page('/l3-networks/$id/edit', () => import('../l3-networks/l3-network-form-page.js'), 'EditL3NetworkPage'),
  page(
    '/listener-policies',
    () => import('../listener-policies/listener-policies-page.js'),
    'ListenerPoliciesPage',
    policiesSearch,
  ),
  page(
    '/listener-policies/edit',
    () => import('../listener-policies/listener-policy-form-page.js'),
    'ListenerPolicyFormPage',
    policySearch,
  ),
  page('/fleet-file/sets/$set', () => import('../fleet-file/set-page.js'), 'SetPage'),
  page('/fleet-file/applies/$id', () => import('../fleet-file/apply-page.js'), 'ApplyPage'),
  page('/ports', () => import('../ports/ports-page.js'), 'PortsPage', portsSearch),
  page('/topology', () => import('../topology/topology-page.js'), 'TopologyPage', topologySearch),
  page('/incidents', () => import('../incidents/incidents-page.js'), 'IncidentsPage', incidentsSearch),
  page('/incidents/$id', () => import('../incidents/incident-page.js'), 'IncidentPage', incidentSearch),
  page('/audit', () => import('../audit/audit-page.js'), 'AuditPage', auditSearch),
]);

export const router = createRouter({
  routeTree,
  basepath: '/console',
  // What no page reads is dropped, as what a chat adds to a link.
  search: { strict: true },
  parseSearch,
  stringifySearch,
  defaultPreload: 'intent',
  defaultErrorComponent: Failed,
  defaultPendingComponent: PageSkeleton,
  scrollRestoration: true,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}

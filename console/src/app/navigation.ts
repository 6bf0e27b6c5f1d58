/** What the navigation and the palette lead to. A page is added here and in `router.tsx`. */
import type { LinkProps } from '@tanstack/react-router';
import type { Role } from '../shared/session.js';
import { text } from './shell.text.js';

interface Destination {
  readonly to: NonNullable<LinkProps['to']>;
  readonly label: string;
  /** Who sees it; everybody when absent. */
  readonly role?: Role;
}

export const pages: readonly Destination[] = [
  { to: '/', label: text.pages.overview },
  { to: '/nodes', label: text.pages.nodes },
  { to: '/chains', label: text.pages.chains },
  { to: '/upstreams', label: text.pages.upstreams },
  { to: '/credentials', label: text.pages.credentials },
  { to: '/routes', label: text.pages.routes },
  { to: '/l3-networks', label: text.pages.l3Networks },
  { to: '/listener-policies', label: text.pages.policies },
  { to: '/ports', label: text.pages.ports },
  { to: '/topology', label: text.pages.topology },
  { to: '/audit', label: text.pages.audit },
  { to: '/fleet-file', label: text.pages.fleetFile },
  { to: '/webhooks', label: text.pages.webhooks, role: 'admin' },
  { to: '/tokens', label: text.pages.tokens },
  { to: '/users', label: text.pages.users, role: 'admin' },
  { to: '/settings', label: text.pages.settings },
];

export const actions: readonly Destination[] = [
  { to: '/nodes/new', label: text.pages.addNode, role: 'operator' },
  { to: '/chains/new', label: text.pages.addChain, role: 'operator' },
  { to: '/upstreams/new', label: text.pages.addUpstream, role: 'operator' },
  { to: '/routes/new', label: text.pages.addRoute, role: 'operator' },
  { to: '/l3-networks/new', label: text.pages.addL3Network, role: 'operator' },
  { to: '/credentials/new', label: text.pages.addCredential, role: 'operator' },
  { to: '/webhooks/new', label: text.pages.addWebhook, role: 'admin' },
  { to: '/tokens/new', label: text.pages.addToken },
  { to: '/users/new', label: text.pages.addUser, role: 'admin' },
  { to: '/account', label: text.pages.account },
];

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
  { to: '/upstreams', label: text.pages.upstreams },
  { to: '/credentials', label: text.pages.credentials },
  { to: '/audit', label: text.pages.audit },
];

export const actions: readonly Destination[] = [
  { to: '/upstreams/new', label: text.pages.addUpstream, role: 'operator' },
  { to: '/credentials/new', label: text.pages.addCredential, role: 'operator' },
];

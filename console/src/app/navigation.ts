/**
 * The pages that the navigation and the palette lead to. A page is added here and in `router.tsx`; `wrong` counts what
 * needs attention there, shown beside its entry.
 */
import {
  IconArrowsSplit2,
  IconActivity,
  IconAdjustmentsHorizontal,
  IconAlertTriangle,
  IconCertificate,
  IconFileImport,
  IconHistory,
  IconKey,
  IconNetwork,
  IconPlug,
  IconRoute,
  IconServer2,
  IconSettings,
  IconSitemap,
  IconStairsUp,
  IconTarget,
  IconTicket,
  IconUsers,
  IconWebhook,
  type Icon,
} from '@tabler/icons-react';
import type { LinkProps } from '@tanstack/react-router';
import type { Stats } from '../shared/dashboard.js';
import type { Role } from '../shared/session.js';
import { text } from './shell.text.js';
import { chainsWrong, matters, nodesWrong, type Wrong } from './wrong.js';

interface Destination {
  readonly to: NonNullable<LinkProps['to']>;
  readonly label: string;
  /** Who sees it; everybody when absent. */
  readonly role?: Role;
}

export interface Entry extends Destination {
  readonly icon: Icon;
  readonly wrong?: (stats: Stats) => Wrong;
}

interface Group {
  readonly label: string;
  readonly pages: readonly Entry[];
}

export const groups: readonly Group[] = [
  {
    label: text.groups.watch,
    pages: [
      { to: '/', label: text.pages.overview, icon: IconActivity },
      { to: '/topology', label: text.pages.topology, icon: IconSitemap },
      { to: '/incidents', label: text.pages.incidents, icon: IconAlertTriangle },
      { to: '/audit', label: text.pages.audit, icon: IconHistory },
    ],
  },
  {
    label: text.groups.traffic,
    pages: [
      { to: '/chains', label: text.pages.chains, icon: IconRoute, wrong: chainsWrong },
      { to: '/routes', label: text.pages.routes, icon: IconArrowsSplit2 },
      { to: '/l3-networks', label: text.pages.l3Networks, icon: IconNetwork },
      {
        to: '/upstreams',
        label: text.pages.upstreams,
        icon: IconTarget,
        wrong: ({ l4_upstreams: { unhealthy } }) => ({ count: unhealthy, mood: 'bad' }),
      },
      {
        to: '/ports',
        label: text.pages.ports,
        icon: IconPlug,
        wrong: ({ listeners: { missing } }) => ({ count: missing, mood: 'warning' }),
      },
    ],
  },
  {
    label: text.groups.fleet,
    pages: [
      { to: '/nodes', label: text.pages.nodes, icon: IconServer2, wrong: nodesWrong },
      {
        to: '/credentials',
        label: text.pages.credentials,
        icon: IconCertificate,
        wrong: matters('certificate_ended', 'bad'),
      },
      { to: '/listener-policies', label: text.pages.policies, icon: IconAdjustmentsHorizontal },
      { to: '/rollouts', label: text.pages.rollouts, icon: IconStairsUp, wrong: matters('rollout_halted', 'bad') },
      { to: '/fleet-file', label: text.pages.fleetFile, icon: IconFileImport },
    ],
  },
  {
    label: text.groups.access,
    pages: [
      { to: '/users', label: text.pages.users, role: 'admin', icon: IconUsers },
      { to: '/tokens', label: text.pages.tokens, icon: IconKey },
      { to: '/join-tokens', label: text.pages.joinTokens, icon: IconTicket },
      {
        to: '/webhooks',
        label: text.pages.webhooks,
        role: 'admin',
        icon: IconWebhook,
        wrong: matters('webhook_stopped', 'warning'),
      },
      { to: '/settings', label: text.pages.settings, icon: IconSettings },
    ],
  },
];

export const pages: readonly Destination[] = groups.flatMap((group) => group.pages);

export const actions: readonly Destination[] = [
  { to: '/join-tokens/new', label: text.pages.addMachines, role: 'operator' },
  { to: '/nodes/new', label: text.pages.addNode, role: 'operator' },
  { to: '/chains/new', label: text.pages.addChain, role: 'operator' },
  { to: '/upstreams/new', label: text.pages.addUpstream, role: 'operator' },
  { to: '/routes/new', label: text.pages.addRoute, role: 'operator' },
  { to: '/l3-networks/new', label: text.pages.addL3Network, role: 'operator' },
  { to: '/credentials/new', label: text.pages.addCredential, role: 'operator' },
  { to: '/listener-policies/edit', label: text.pages.addPolicy, role: 'operator' },
  { to: '/rollout-policies/new', label: text.pages.addRolloutPolicy, role: 'operator' },
  { to: '/webhooks/new', label: text.pages.addWebhook, role: 'admin' },
  { to: '/tokens/new', label: text.pages.addToken },
  { to: '/users/new', label: text.pages.addUser, role: 'admin' },
  { to: '/fleet-file', label: text.pages.applyFile, role: 'operator' },
  { to: '/settings/edit', label: text.pages.editSettings, role: 'operator' },
  { to: '/rollout-policies', label: text.pages.rolloutPolicies },
  { to: '/account', label: text.pages.account },
];

/** A resource by its name, as a link to its page where it has one. A type with a page is added here. */
import { Code } from '@mantine/core';
import type { LinkProps } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { isListed, type ListedType } from '../api/crud.js';
import { useMay } from '../session.js';
import { TextLink } from './links.js';

export type ResourceLinkTarget = Pick<LinkProps, 'to' | 'params' | 'search'>;

/** Where the pages of a type begin. */
const bases = {
  node: '/nodes',
  l4_chain: '/chains',
  l4_upstream: '/upstreams',
  credential: '/credentials',
  route: '/routes',
  l3_network: '/l3-networks',
  rollout_policy: '/rollout-policies',
  join_token: '/join-tokens',
  webhook: '/webhooks',
  api_token: '/tokens',
  user: '/users',
} as const satisfies Readonly<Record<ListedType, string>>;

/** Types that are made once and not edited. */
const withoutForm: readonly string[] = ['api_token', 'join_token', 'user'];

/** The addresses of the pages of a type: its list, the form of a new one, one, and its form. */
export const pagesOf = (type: ListedType) => {
  const base = bases[type];
  const at = (to: string, id: string): ResourceLinkTarget => ({ to, params: { id } }) as ResourceLinkTarget;
  return {
    list: { to: base } satisfies ResourceLinkTarget,
    add: { to: `${base}/new` } satisfies ResourceLinkTarget,
    one: (id: string) => at(`${base}/$id`, id),
    edit: withoutForm.includes(type) ? undefined : (id: string) => at(`${base}/$id/edit`, id),
  };
};

/** The pages of subjects that no list of resources has. */
const otherPages = {
  // Its id is the key of its listener; an IPv6 address has no slash.
  listener_policy: (id: string): ResourceLinkTarget => {
    const [node_id, transport, listen_addr, listen_port] = id.split('/');
    const search = { node_id, transport: transport === 'udp' ? 'udp' : 'tcp', listen_addr, listen_port } as const;
    return { to: '/listener-policies/edit', search };
  },
  fleet: (id: string): ResourceLinkTarget => ({ to: '/fleet-file/applies/$id', params: { id } }),
  rollout: (id: string): ResourceLinkTarget => ({ to: '/rollouts/$id', params: { id } }),
  connectivity: (): ResourceLinkTarget => ({ to: '/settings' }),
  service: (): ResourceLinkTarget => ({ to: '/settings/identity' }),
} as const;

/** The page of a resource; undefined for a type without pages. */
function pageOf(type: string, id: string): ResourceLinkTarget | undefined {
  if (isListed(type)) return pagesOf(type).one(id);
  return Object.hasOwn(otherPages, type) ? otherPages[type as keyof typeof otherPages](id) : undefined;
}

/** Types as people call them. */
export const typeNames: Readonly<Record<string, string>> = {
  node: 'Node',
  l4_chain: 'Chain',
  l4_upstream: 'Upstream',
  credential: 'Credential',
  route: 'Route',
  l3_network: 'L3 network',
  listener_policy: 'Listener policy',
  connectivity: 'Settings',
  user: 'User',
  session: 'Sign-in',
  api_token: 'API token',
  webhook: 'Webhook',
  join_token: 'Join token',
  rollout_policy: 'Rollout policy',
  rollout: 'Rollout',
  fleet: 'Fleet file',
  service: 'Service',
};

interface ResourceLinkProps {
  readonly type: string;
  readonly id: string | null;
  /** Shown; the id when null. */
  readonly name: string | null;
}

export function ResourceLink({ type, id, name }: ResourceLinkProps): ReactNode {
  const shown = name ?? id ?? typeNames[type] ?? type;
  const page = id === null ? undefined : pageOf(type, id);
  return page === undefined ? shown : <TextLink {...page}>{shown}</TextLink>;
}

interface FieldLinkProps {
  readonly type: string;
  readonly id: string;
  /** The path of a field of the resource, as errors name it: `hops[0].listen_port`. */
  readonly path: string;
}

/** The field that an error is about: in the resource's form for those who may change it, else on its page. */
export function FieldLink({ type, id, path }: FieldLinkProps): ReactNode {
  const mayChange = useMay('operator');
  const form = mayChange && isListed(type) ? pagesOf(type).edit?.(id) : undefined;
  const target = form ?? pageOf(type, id);
  const shown = <Code>{path}</Code>;
  if (target === undefined) return shown;
  return <TextLink {...({ ...target, search: { field: path } } as ResourceLinkTarget)}>{shown}</TextLink>;
}

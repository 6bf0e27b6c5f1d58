/** A resource by its name, as a link to its page where it has one. A type with a page is added here. */
import { Code } from '@mantine/core';
import type { LinkProps } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useMay } from '../session.js';
import { TextLink } from './links.js';

export type ResourceLinkTarget = Pick<LinkProps, 'to' | 'params' | 'search'>;

/** The page of a resource, by its type. */
const pages = {
  node: (id: string): ResourceLinkTarget => ({ to: '/nodes/$id', params: { id } }),
  l4_chain: (id: string): ResourceLinkTarget => ({ to: '/chains/$id', params: { id } }),
  l4_upstream: (id: string): ResourceLinkTarget => ({ to: '/upstreams/$id', params: { id } }),
  credential: (id: string): ResourceLinkTarget => ({ to: '/credentials/$id', params: { id } }),
  api_token: (id: string): ResourceLinkTarget => ({ to: '/tokens/$id', params: { id } }),
  user: (id: string): ResourceLinkTarget => ({ to: '/users/$id', params: { id } }),
  webhook: (id: string): ResourceLinkTarget => ({ to: '/webhooks/$id', params: { id } }),
  route: (id: string): ResourceLinkTarget => ({ to: '/routes/$id', params: { id } }),
  l3_network: (id: string): ResourceLinkTarget => ({ to: '/l3-networks/$id', params: { id } }),
  // Its id is the key of its listener; an IPv6 address has no slash.
  listener_policy: (id: string): ResourceLinkTarget => {
    const [node_id, transport, listen_addr, listen_port] = id.split('/');
    const search = { node_id, transport: transport === 'udp' ? 'udp' : 'tcp', listen_addr, listen_port } as const;
    return { to: '/listener-policies/edit', search };
  },
  fleet: (id: string): ResourceLinkTarget => ({ to: '/fleet-file/applies/$id', params: { id } }),
  connectivity: (): ResourceLinkTarget => ({ to: '/settings' }),
} as const;

export type LinkedType = keyof typeof pages;

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
  fleet: 'Fleet file',
  service: 'Service',
};

/** The form of a resource, by its type, where it has one with a field for each of the API's. */
const forms: Partial<Readonly<Record<string, (id: string) => ResourceLinkTarget>>> = {
  node: (id) => ({ to: '/nodes/$id/edit', params: { id } }),
  l4_chain: (id) => ({ to: '/chains/$id/edit', params: { id } }),
  l4_upstream: (id) => ({ to: '/upstreams/$id/edit', params: { id } }),
  credential: (id) => ({ to: '/credentials/$id/edit', params: { id } }),
};

export const targetOf = (type: LinkedType, id: string): ResourceLinkTarget => pages[type](id);

interface ResourceLinkProps {
  readonly type: string;
  readonly id: string | null;
  /** Shown; the id when null. */
  readonly name: string | null;
}

export function ResourceLink({ type, id, name }: ResourceLinkProps): ReactNode {
  const shown = name ?? id ?? typeNames[type] ?? type;
  if (id === null || !Object.hasOwn(pages, type)) return shown;
  return <TextLink {...targetOf(type as LinkedType, id)}>{shown}</TextLink>;
}

interface FieldLinkProps {
  readonly type: string;
  readonly id: string;
  /** Of a field of the resource, as errors name it: `hops[0].listen_port`. */
  readonly path: string;
}

/** The field that an error is about: in the resource's form for those who may change it, else on its page. */
export function FieldLink({ type, id, path }: FieldLinkProps): ReactNode {
  const mayChange = useMay('operator');
  const page = (pages as Partial<Record<string, (id: string) => ResourceLinkTarget>>)[type];
  const target = (mayChange ? forms[type] : undefined) ?? page;
  const shown = <Code>{path}</Code>;
  if (target === undefined) return shown;
  return <TextLink {...({ ...target(id), search: { field: path } } as ResourceLinkTarget)}>{shown}</TextLink>;
}

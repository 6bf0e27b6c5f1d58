/** Finds resources of every type that has a page, by a part of their name. */
import { api, dataOf } from '../shared/api/client.js';
import type { LinkedType, ResourceLinkTarget } from '../shared/ui/resource-link.js';
import { targetOf } from '../shared/ui/resource-link.js';

interface Found {
  readonly id: string;
  readonly name: string;
  readonly type: LinkedType;
  readonly link: ResourceLinkTarget;
}

/** Of each type. */
const shown = 5;

type Named = { readonly items: readonly { readonly id: string; readonly name: string }[] };
type Ask = (query: { q: string; page_size: number }, signal: AbortSignal) => Promise<Named>;

/** Those that have names. */
type Searched = Exclude<LinkedType, 'connectivity' | 'listener_policy' | 'fleet'>;

/** How each type is asked for. */
const lists: Readonly<Record<Searched, Ask>> = {
  node: (query, signal) => dataOf(api.GET('/api/nodes', { params: { query }, signal })),
  l4_chain: (query, signal) => dataOf(api.GET('/api/l4-chains', { params: { query }, signal })),
  l4_upstream: (query, signal) => dataOf(api.GET('/api/l4-upstreams', { params: { query }, signal })),
  credential: (query, signal) => dataOf(api.GET('/api/credentials', { params: { query }, signal })),
  api_token: (query, signal) => dataOf(api.GET('/api/auth/tokens', { params: { query }, signal })),
  route: (query, signal) => dataOf(api.GET('/api/routes', { params: { query }, signal })),
  l3_network: (query, signal) => dataOf(api.GET('/api/l3-networks', { params: { query }, signal })),
  webhook: (query, signal) => dataOf(api.GET('/api/webhooks', { params: { query }, signal })),
  user: async (query, signal) => {
    const { items } = await dataOf(api.GET('/api/auth/users', { params: { query }, signal }));
    return { items: items.map(({ id, username }) => ({ id, name: username })) };
  },
};

/** What the service refuses to all others. */
const forAdmins: ReadonlySet<LinkedType> = new Set<LinkedType>(['user', 'webhook']);

/** @throws Refusal */
export async function findResources(q: string, isAdmin: boolean, signal: AbortSignal): Promise<readonly Found[]> {
  const types = Object.entries(lists) as readonly (readonly [Searched, Ask])[];
  const found = await Promise.all(
    types
      .filter(([type]) => isAdmin || !forAdmins.has(type))
      .map(async ([type, ask]) => {
        const { items } = await ask({ q, page_size: shown }, signal);
        return items.map(({ id, name }) => ({ id, name, type, link: targetOf(type, id) }));
      }),
  );
  return found.flat();
}

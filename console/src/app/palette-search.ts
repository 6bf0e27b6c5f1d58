/** Finds resources of every type that has a list, by a part of their name. */
import { findIn, nameOf, type ListedType } from '../shared/api/crud.js';
import { pagesOf, type ResourceLinkTarget } from '../shared/ui/resource-link.js';

interface Found {
  readonly id: string;
  readonly name: string;
  readonly type: ListedType;
  readonly link: ResourceLinkTarget;
}

/** Of each type. */
const shown = 5;

const types = [
  'node',
  'l4_chain',
  'l4_upstream',
  'credential',
  'api_token',
  'route',
  'l3_network',
  'rollout_policy',
  'join_token',
] as const;
/** What the service refuses to all others. */
const forAdmins = ['webhook', 'user'] as const;

/** @throws Refusal */
export async function findResources(q: string, isAdmin: boolean, signal: AbortSignal): Promise<readonly Found[]> {
  const found = await Promise.all(
    [...types, ...(isAdmin ? forAdmins : [])].map(async (type) => {
      const { items } = await findIn(type, { q, page_size: shown }, signal);
      return items.map((item) => ({ id: item.id, name: nameOf(item), type, link: pagesOf(type).one(item.id) }));
    }),
  );
  return found.flat();
}

/** The page of the console that shows a list of the API: both have the same filters by the same names. */
import type { ResourceLinkTarget } from '../shared/ui/resource-link.js';

const pages: Readonly<Record<string, ResourceLinkTarget['to']>> = {
  '/api/l4-chains': '/chains',
  '/api/l4-upstreams': '/upstreams',
  '/api/nodes': '/nodes',
  '/api/nodes/ports/runtime': '/ports',
  '/api/credentials': '/credentials',
  '/api/rollouts': '/rollouts',
  '/api/webhooks': '/webhooks',
};

/** @param list path and query @returns undefined where no page shows that list */
export function pageOfList(list: string): ResourceLinkTarget | undefined {
  const [path = '', query = ''] = list.split('?');
  const to = pages[path];
  return to === undefined ? undefined : { to, search: Object.fromEntries(new URLSearchParams(query)) };
}

/** What the overview asks. */
import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, dataOf } from '../shared/api/client.js';
import type { Schemas } from '../shared/api/client.js';

export type Stats = Schemas['DashboardStats'];

/** Traffic and sessions move without events. */
const figuresEveryMs = 5_000;

/** How many are named of those that need attention. */
export const named = 5;

export const dashboardQuery = queryOptions({
  queryKey: ['dashboard'],
  queryFn: ({ signal }) => dataOf(api.GET('/api/dashboard/stats', { signal })),
  refetchInterval: figuresEveryMs,
  meta: { follows: 'all' },
});

type NodesOf =
  | { readonly apply: 'rejected' }
  | { readonly status: 'offline' }
  | { readonly listeners: 'missing'; readonly status: 'online' };

/** The nodes in a state that needs attention, the latest seen first. */
export const nodesInQuery = (filter: NodesOf) =>
  queryOptions({
    queryKey: ['node', 'in', filter],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET('/api/nodes', { params: { query: { ...filter, sort: '-last_seen_at', page_size: named } }, signal }),
      ),
    placeholderData: keepPreviousData,
    refetchInterval: 'listeners' in filter ? figuresEveryMs : false,
    meta: { follows: ['agent', 'l4_chain', 'route', 'l3_network'] },
  });

const expiringMs = 30 * 86_400_000;
const minuteMs = 60_000;

/** Certificates that end soon, or have. The time is cut to the minute, so that the question stays the same for a while. */
export const expiringQuery = (now: number) => {
  const before = new Date(Math.floor((now + expiringMs) / minuteMs) * minuteMs).toISOString();
  return queryOptions({
    queryKey: ['credential', 'expiring', before],
    queryFn: ({ signal }) =>
      dataOf(api.GET('/api/credentials', { params: { query: { expires_before: before, page_size: named } }, signal })),
    placeholderData: keepPreviousData,
  });
};

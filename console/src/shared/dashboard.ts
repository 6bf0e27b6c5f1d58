/** What the dashboard says of the whole fleet: the overview shows it, the navigation counts what is wrong. */
import { queryOptions } from '@tanstack/react-query';
import { api, dataOf, type Schemas } from './api/client.js';

export type Stats = Schemas['DashboardStats'];
export type Matter = Schemas['Matter'];

export const dashboardQuery = queryOptions({
  queryKey: ['dashboard'],
  async queryFn({ signal }) {
    const answer = await api.GET('/api/dashboard/stats', { signal });
    const stats = await dataOf(Promise.resolve(answer));
    // Agents' reports are only as last read.
    return { stats, stale: answer.response.headers.has('x-telemetry-stale') };
  },
  meta: { follows: 'all' },
});

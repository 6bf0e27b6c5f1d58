/** The connectivity settings, which other pages read too, for the rollout policies that they name. */
import { queryOptions } from '@tanstack/react-query';
import { api, dataOf } from './api/client.js';

/** The id under which the audit has them. */
export const settingsId = 'connectivity';

/** A policy's rename changes them. */
export const settingsQuery = queryOptions({
  queryKey: ['connectivity', 'one'],
  queryFn: ({ signal }) => dataOf(api.GET('/api/settings/connectivity', { signal })),
  meta: { follows: ['rollout_policy'] },
});

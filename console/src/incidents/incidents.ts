/** Queries about incidents. */
import { queryOptions } from '@tanstack/react-query';
import { api, dataOf, Refusal, type Schemas } from '../shared/api/client.js';
import { read } from '../shared/api/read.js';
import { largestPage, pageSize } from '../shared/search.js';
import { text } from './incidents.text.js';

export type Incident = Schemas['Incident'];

/** A command about one of these may end an incident. */
const follows = ['node', 'l4_chain', 'l4_upstream', 'credential'];

export const incidentsQuery = (filters: {
  readonly resource_type?: Incident['resource']['type'];
  readonly resource_id?: string;
  readonly page?: number;
  readonly open?: 'true';
}) =>
  read('incident', '/api/incidents', { query: { ...filters, page_size: pageSize } }, { follows, keepsPrevious: true });

/** One incident, found among the newest: of its resource, where the address names that. */
export const incidentQuery = (id: string, resourceId: string | undefined) =>
  queryOptions({
    queryKey: ['incident', 'one', id, resourceId],
    queryFn: async ({ signal }) => {
      const query = { resource_id: resourceId, page_size: largestPage };
      const { items } = await dataOf(api.GET('/api/incidents', { params: { query }, signal }));
      const found = items.find((one) => one.id === id);
      if (found !== undefined) return found;
      throw new Refusal({ status: 404, code: 'not_found', sentence: text.gone, requestId: null });
    },
    meta: { follows },
  });

const beforeMs = 3_600_000;
const shown = 10;

/** Changes of these affect neither what a node runs nor whether it runs. */
const aside = 'session,user,api_token,join_token,webhook,rollout_policy';

/** Changes of the fleet in the hour before, newest first. */
export const changesBeforeQuery = ({ began_at: to }: Incident) => {
  const from = new Date(Date.parse(to) - beforeMs).toISOString();
  return read('audit', '/api/audit', { query: { from, to, not_resource_type: aside, page_size: shown } });
};

/** The search parameters of the pages of incidents. */
import { pageOf, textOf, wordOf, type Search } from '../shared/search.js';

const types = ['node', 'l4_chain', 'l4_upstream', 'credential'] as const;

export const incidentsSearch = (search: Search) => ({
  resource_type: wordOf(search, 'resource_type', types),
  resource_id: textOf(search, 'resource_id'),
  page: pageOf(search),
});

/** For one incident: its resource, by which it is found. */
export const incidentSearch = (search: Search) => ({ resource_id: textOf(search, 'resource_id') });

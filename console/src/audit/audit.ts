/** Queries and commands of the audit. */
import { queryOptions } from '@tanstack/react-query';
import { api, dataOf, doneOf, type Done, type Schemas } from '../shared/api/client.js';
import { read } from '../shared/api/read.js';
import { pageSize } from '../shared/search.js';
import { previewOf, type RolloutPreview, type RolloutQuery } from '../shared/rollout-preview.js';
import { auditFilters, type AuditSearch } from './audit-search.js';

export type AuditEntry = Schemas['AuditEntry'];

export const auditQuery = (search: AuditSearch) => {
  const query = { ...auditFilters(search), page: search.page, page_size: pageSize };
  return read('audit', '/api/audit', { query }, { keepsPrevious: true });
};

/** @param id empty: nothing is requested */
export const entryQuery = (id: string) => read('audit', '/api/audit/{id}', { path: { id } }, { enabled: id !== '' });

/** All changes of an entry that shows only the first ones. */
export const changesQuery = (id: string, page: number) => {
  const params = { path: { id }, query: { page, page_size: pageSize } };
  return { ...read('audit', '/api/audit/{id}/changes', params, { keepsPrevious: true }), staleTime: Infinity };
};

/** The changes that a revert would make. @throws Refusal that the revert would get */
export const revertPlanQuery = (id: string) =>
  queryOptions({
    queryKey: ['audit', 'revert', id],
    queryFn: async ({ signal }) => {
      const answer = await dataOf(
        api.POST('/api/audit/{id}/revert', { params: { path: { id }, query: { dry_run: 'true' } }, signal }),
      );
      if ('entry_id' in answer) return answer.changes;
      throw new Error('a dry run answered with an entry');
    },
    meta: { follows: 'all' },
  });

/** The waves in which a revert would go. @throws Refusal that it would get */
export const tryRevert = (id: string, query: RolloutQuery, signal: AbortSignal): Promise<RolloutPreview> =>
  previewOf(
    api.POST('/api/audit/{id}/revert', { params: { path: { id }, query: { ...query, dry_run: 'true' } }, signal }),
  );

/** @throws Refusal */
export const confirmChange = (id: string): Promise<Done<object>> =>
  doneOf(api.POST('/api/audit/{id}/confirm', { params: { path: { id } } }));

/** @throws Refusal */
export const revert = (id: string, query: RolloutQuery): Promise<Done<object>> =>
  doneOf(api.POST('/api/audit/{id}/revert', { params: { path: { id }, query } }));

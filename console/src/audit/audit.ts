/** What the console asks about the audit and does with it. */
import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, dataOf } from '../shared/api/client.js';
import type { Schemas } from '../shared/api/client.js';
import { pageSize } from '../shared/ui/data-table.js';
import type { AuditSearch } from './audit-search.js';

export type AuditEntry = Schemas['AuditEntry'];

export const auditQuery = ({ entry: _open, ...search }: AuditSearch) =>
  queryOptions({
    queryKey: ['audit', 'list', search],
    queryFn: ({ signal }) =>
      dataOf(api.GET('/api/audit', { params: { query: { ...search, page_size: pageSize } as never }, signal })),
    placeholderData: keepPreviousData,
  });

/** What a revert would change. @throws Refusal that the revert would get */
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

export const revert = (id: string): Promise<unknown> =>
  dataOf(api.POST('/api/audit/{id}/revert', { params: { path: { id } } }));

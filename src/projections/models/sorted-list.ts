/**
 * What the lists of resources share: the fields to sort and search by, and list queries as queries of the read store.
 * Implements `docs/contract/rest.md#envelope`, list queries.
 */
import type { ResourceMeta } from '../../domain/resource/meta.js';
import { nameKey } from '../../domain/resource/names.js';
import { unreachable } from '../../kernel/errors.js';
import { documentOrder, matchesAll } from '../../storage/field-values.js';
import type { Filter, IndexSpec, Query } from '../../storage/read-store.js';
import type { ListOf, ListQuery } from '../port.js';

/** The fields of every listed document. */
export type SortFields = {
  /** NFC, lower-cased; lists sort and search by it. */
  readonly name_key: string;
  readonly created_at: string;
  readonly updated_at: string;
};

export const sortIndexes: readonly IndexSpec[] = [
  { fields: ['name_key'] },
  { fields: ['created_at'] },
  { fields: ['updated_at'] },
];

export function sortFields(resource: ResourceMeta & { readonly name: string }): SortFields {
  return { name_key: nameKey(resource.name), created_at: resource.created_at, updated_at: resource.updated_at };
}

/** A case-insensitive substring of the name. */
export function nameFilter(q: string | undefined): readonly Filter[] {
  return q === undefined || q === '' ? [] : [{ field: 'name_key', op: 'contains', value: nameKey(q) }];
}

type Sort = NonNullable<Query['sort']>;

export function sortOf(sort: ListQuery['sort']): Sort {
  switch (sort) {
    case 'name':
      return [{ field: 'name_key', direction: 'asc' }];
    case '-name':
      return [{ field: 'name_key', direction: 'desc' }];
    case 'created_at':
      return [{ field: 'created_at', direction: 'asc' }];
    case '-created_at':
      return [{ field: 'created_at', direction: 'desc' }];
    case 'updated_at':
      return [{ field: 'updated_at', direction: 'asc' }];
    case '-updated_at':
      return [{ field: 'updated_at', direction: 'desc' }];
    default:
      return unreachable(sort);
  }
}

/** One page of the matching documents, sorted, then by id. */
export function listQuery(query: ListQuery, where: readonly Filter[] = []): Query {
  return {
    where: [...where, ...nameFilter(query.q)],
    sort: sortOf(query.sort),
    ...pageOf(query),
  };
}

/** One page of the matching states, as `listQuery` has the store choose it. For callers who hold all states. */
export function pageOfStates<S extends ResourceMeta & { readonly name: string }>(
  states: readonly S[],
  query: ListQuery,
): ListOf<S> {
  const where = nameFilter(query.q);
  const sorted = states
    .map((state) => ({ id: state.id, fields: sortFields(state), state }))
    .filter(({ fields }) => matchesAll(fields, where))
    .sort(documentOrder(sortOf(query.sort)));
  const { skip, limit } = pageOf(query);
  return { items: sorted.slice(skip, skip + limit).map(({ state }) => state), total: sorted.length };
}

export function pageOf(query: { readonly page: number; readonly pageSize: number }): { skip: number; limit: number } {
  return { skip: (query.page - 1) * query.pageSize, limit: query.pageSize };
}

/** Lists: how they are sorted, searched by name and cut into pages. */
import { describe, expect, it } from 'vitest';
import { listQuery, nameFilter, pageOf, sortFields, sortOf } from '../../src/projections/models/sorted-list.js';

describe('a list', () => {
  it.each([
    ['name', 'name_key', 'asc'],
    ['-name', 'name_key', 'desc'],
    ['created_at', 'created_at', 'asc'],
    ['-created_at', 'created_at', 'desc'],
    ['updated_at', 'updated_at', 'asc'],
    ['-updated_at', 'updated_at', 'desc'],
  ] as const)('is sorted by %s', (sort, field, direction) => {
    expect(sortOf(sort)).toEqual([{ field, direction }]);
  });

  it('is searched by a part of the name without regard to case, and skips the pages before', () => {
    expect([nameFilter(undefined), nameFilter('')]).toEqual([[], []]);
    const where = [{ field: 'name_key', op: 'contains', value: 'web' }];
    expect(nameFilter('WEB')).toEqual(where);
    expect(listQuery({ q: 'Web', sort: 'name', page: 3, pageSize: 20 } as never, [{ field: 'a' } as never])).toEqual({
      where: [{ field: 'a' }, ...where],
      sort: [{ field: 'name_key', direction: 'asc' }],
      skip: 40,
      limit: 20,
    });
    expect(listQuery({ sort: 'name', page: 1, pageSize: 5 } as never).where).toEqual([]);
    expect(pageOf({ page: 1, pageSize: 50 })).toEqual({ skip: 0, limit: 50 });
    const meta = { name: 'Web', created_at: 'c', updated_at: 'u' };
    expect(sortFields(meta as never)).toEqual({ name_key: 'web', created_at: 'c', updated_at: 'u' });
  });
});

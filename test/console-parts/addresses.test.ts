/** What the addresses of the console's pages hold (`docs/contract/console.md#rules`, deep links). */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseSearch, stringifySearch } from '../../console/src/app/search.js';
import { auditSearch } from '../../console/src/audit/audit-search.js';
import { credentialsSearch, endsBefore } from '../../console/src/credentials/credentials-search.js';
import { nodeConfigSearch, nodesSearch } from '../../console/src/nodes/nodes-search.js';
import { pageOfList } from '../../console/src/overview/matter-page.js';
import { anySearch, listSearch, ownOf } from '../../console/src/shared/search.js';

describe('the query of an address', () => {
  test('is as people write it', () => {
    expect(parseSearch('?status=offline&label=region:eu&label=rack')).toEqual({
      status: 'offline',
      label: ['region:eu', 'rack'],
    });
    expect(stringifySearch({ status: 'offline', label: ['region:eu', 'rack'], q: undefined, sort: '' })).toBe(
      '?status=offline&label=region%3Aeu&label=rack',
    );
    expect(stringifySearch({})).toBe('');
  });

  test('is read back as it was written', () => {
    const value = fc.string({ minLength: 1 });
    const values = fc.oneof(value, fc.array(value, { minLength: 2 }));
    const names = fc.string({ minLength: 1 }).filter((name) => name !== '__proto__');
    fc.assert(
      fc.property(fc.dictionary(names, values, { noNullPrototype: true }), (search) => {
        expect(parseSearch(stringifySearch(search))).toEqual(search);
      }),
    );
  });
});

test('what an address holds and no page understands is dropped, so that an old bookmark still opens', () => {
  expect(listSearch({ q: 'a', sort: 'colour', page: '0' })).toEqual({ q: 'a', sort: undefined, page: undefined });
  expect(listSearch({ q: '', sort: '-name', page: '3' })).toEqual({ q: undefined, sort: '-name', page: 3 });
  expect(nodesSearch({ status: 'asleep', label: 'rack', listeners: 'missing' })).toMatchObject({
    status: undefined,
    label: ['rack'],
    listeners: 'missing',
  });
  expect(nodeConfigSearch({ generation: '0', from: 'x' })).toEqual({ generation: 0, from: undefined });
  expect(nodeConfigSearch({ generation: '', from: '-1' })).toEqual({ generation: undefined, from: undefined });
  expect(auditSearch({ from: 'yesterday', to: '2030-01-31' })).toMatchObject({
    from: undefined,
    to: '2030-01-31T00:00:00.000Z',
  });
  expect(credentialsSearch({ expires_before: 'later' })).toMatchObject({ expires_before: undefined });
  expect(anySearch({ span: 'decade', dialog: 'delete' })).toEqual({
    dialog: 'delete',
    field: undefined,
    span: undefined,
  });
});

test('certificates that end soon are a word in the address, and for the API a time that stays for an hour', () => {
  const now = Date.parse('2030-01-31T12:00:01.000Z');
  expect(credentialsSearch({ expires_before: 'soon' })).toMatchObject({ expires_before: 'soon' });
  expect(endsBefore('soon', now)).toBe('2030-03-02T13:00:00.000Z');
  expect(endsBefore('soon', now + 3_598_000)).toBe('2030-03-02T13:00:00.000Z');
  expect(endsBefore('2030-01-01T00:00:00.000Z', now)).toBe('2030-01-01T00:00:00.000Z');
  expect(endsBefore(undefined, now)).toBeUndefined();
});

test('a list asks the API for nothing that the address holds for every page', () => {
  expect(ownOf({ dialog: 'delete', field: 'name', span: '30d' as const, q: 'a' })).toEqual({ q: 'a' });
});

test('a matter leads to the page that shows its list, with the same filters', () => {
  expect(pageOfList('/api/l4-chains?health=down&sort=name')).toEqual({
    to: '/chains',
    search: { health: 'down', sort: 'name' },
  });
  expect(pageOfList('/api/nodes/ports/runtime')).toEqual({ to: '/ports', search: {} });
  expect(pageOfList('/api/unheard-of')).toBeUndefined();
});

/** What the audit asks for an address, its days, and its file for spreadsheets (`docs/contract/console.md#pages`). */
import { expect, test } from 'vitest';
import { auditFilters, auditSearch } from '../../console/src/audit/audit-search.js';
import type { AuditEntry } from '../../console/src/audit/audit.js';
import { byDay } from '../../console/src/audit/days.js';
import { csvOf } from '../../console/src/audit/export.js';

test.each([
  [{}, { not_resource_type: 'session' }],
  [{ sign_ins: 'true', q: 'anna' }, { q: 'anna' }],
  // Whoever asks for them means them.
  [{ resource_type: 'session' }, { resource_type: 'session' }],
  [{ action: 'session.sign_in_refused' }, { action: 'session.sign_in_refused' }],
  [
    { action: 'node.create', entry: 'e', page: '2', changes: '3' },
    { action: 'node.create', not_resource_type: 'session' },
  ],
])('the address %j asks for %j', (address, asked) => expect(auditFilters(auditSearch(address))).toEqual(asked));

test('entries stand under the day of the reader, in their order', () => {
  const at = (day: number, hour: number) => ({ at: new Date(2030, 0, day, hour).toISOString() });
  const days = byDay([at(2, 9), at(2, 1), at(1, 23)]);
  expect(days.map(({ day, entries }) => [day, entries.length])).toEqual([
    [expect.stringContaining('2 January 2030'), 2],
    [expect.stringContaining('1 January 2030'), 1],
  ]);
});

test('a cell is quoted where it must be, and none is a formula', () => {
  const entry = {
    id: 'e',
    at: '2030-01-31T12:00:00.000Z',
    actor: { type: 'user', id: 'a', name: '=HYPERLINK("x")' },
    token: null,
    action: 'node.delete',
    resource: { type: 'node', id: 'n', name: 'a, "b"' },
    changes: [],
    changes_total: 0,
    request_id: '-1',
    position: 'svc-fleet@1',
    reverts: null,
    reverted_by: null,
    revertible: true,
    not_revertible_because: null,
    confirm: null,
  } satisfies AuditEntry;
  const [, row] = csvOf([entry]).split('\r\n');
  expect(row).toBe(
    `2030-01-31T12:00:00.000Z,"'=HYPERLINK(""x"")",,node.delete,node,n,"a, ""b""","'=HYPERLINK(""x"") deleted node a, ""b""",e,,,'-1,svc-fleet@1`,
  );
});

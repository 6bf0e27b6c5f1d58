/** The audit as a file: the entries that pass the filters of the page, newest first. Pure, except for `readAll`. */
import { api, dataOf } from '../shared/api/client.js';
import { entrySentence } from '../shared/audit/entry-words.js';
import type { AuditEntry } from './audit.js';
import { auditFilters, type AuditSearch } from './audit-search.js';

const partSize = 500;
/** Larger files are made with `svcctl` or the API. */
export const mostExported = 10_000;

export interface Exported {
  readonly entries: readonly AuditEntry[];
  /** Whether older entries are left out. */
  readonly isCut: boolean;
}

/** @throws Refusal */
export async function readAll(search: AuditSearch): Promise<Exported> {
  const entries: AuditEntry[] = [];
  let after: string | null | undefined = 'start';
  while (typeof after === 'string' && entries.length < mostExported) {
    const query = { ...auditFilters(search), after, page_size: partSize };
    const answer: { readonly items: readonly AuditEntry[]; readonly next?: string | null } = await dataOf(
      api.GET('/api/audit', { params: { query } }),
    );
    entries.push(...answer.items);
    after = answer.next;
  }
  return { entries: entries.slice(0, mostExported), isCut: typeof after === 'string' };
}

const columns: readonly (readonly [heading: string, of: (entry: AuditEntry) => string | null])[] = [
  ['at', ({ at }) => at],
  ['actor', ({ actor }) => actor.name ?? actor.type],
  ['token', ({ token }) => token?.name ?? null],
  ['action', ({ action }) => action],
  ['resource_type', ({ resource }) => resource.type],
  ['resource_id', ({ resource }) => resource.id],
  ['resource_name', ({ resource }) => resource.name],
  ['sentence', entrySentence],
  ['id', ({ id }) => id],
  ['reverts', ({ reverts }) => reverts],
  ['reverted_by', ({ reverted_by: by }) => by],
  ['request_id', ({ request_id: id }) => id],
  ['position', ({ position }) => position],
];

/** By RFC 4180. Text that a spreadsheet would take for a formula gets an apostrophe in front. */
function cell(value: string | null): string {
  const text = value ?? '';
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function csvOf(entries: readonly AuditEntry[]): string {
  const rows = [columns.map(([heading]) => heading), ...entries.map((entry) => columns.map(([, of]) => of(entry)))];
  return rows.map((row) => `${row.map(cell).join(',')}\r\n`).join('');
}

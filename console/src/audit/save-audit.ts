/** Saves the audit as a file, and says how much of it that is. */
import { saveFile } from '../shared/save-file.js';
import { sayDone } from '../shared/ui/done.js';
import { formatCount } from '../shared/ui/format.js';
import type { AuditSearch } from './audit-search.js';
import { text } from './audit.text.js';
import { csvOf, mostExported, readAll } from './export.js';

/** @throws Refusal */
export async function saveAudit(search: AuditSearch, as: 'csv' | 'json'): Promise<void> {
  const { entries, isCut } = await readAll(search);
  if (as === 'csv') saveFile('audit.csv', 'text/csv', csvOf(entries));
  else saveFile('audit.json', 'application/json', `${JSON.stringify(entries, null, 2)}\n`);
  sayDone(isCut ? text.exportedNewest(formatCount(mostExported)) : text.exported(formatCount(entries.length)));
}

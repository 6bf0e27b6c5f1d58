/** Saves what the filters leave as a file for a spreadsheet or a program. */
import { Button, Menu } from '@mantine/core';
import type { ReactNode } from 'react';
import { useAttempt } from '../shared/forms/attempt.js';
import { saveFile } from '../shared/save-file.js';
import { sayDone } from '../shared/ui/done.js';
import { formatCount } from '../shared/ui/format.js';
import { Problem } from '../shared/ui/problem.js';
import type { AuditSearch } from './audit-search.js';
import { text } from './audit.text.js';
import { csvOf, mostExported, readAll } from './export.js';

export function ExportMenu({ search }: { readonly search: AuditSearch }): ReactNode {
  const { working, refused, attempt } = useAttempt();
  const save = (as: 'csv' | 'json'): Promise<void> =>
    attempt(async () => {
      const { entries, isCut } = await readAll(search);
      if (as === 'csv') saveFile('audit.csv', 'text/csv', csvOf(entries));
      else saveFile('audit.json', 'application/json', `${JSON.stringify(entries, null, 2)}\n`);
      sayDone(
        isCut ? text.exportedNewest(formatCount(mostExported)) : text.exported(formatCount(entries.length)),
        undefined,
      );
    });
  return (
    <>
      {refused !== undefined && <Problem error={refused} />}
      <Menu position="bottom-end">
        <Menu.Target>
          <Button size="xs" variant="default" loading={working}>
            {text.export}
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={() => void save('csv')}>{text.asCsv}</Menu.Item>
          <Menu.Item onClick={() => void save('json')}>{text.asJson}</Menu.Item>
        </Menu.Dropdown>
      </Menu>
    </>
  );
}

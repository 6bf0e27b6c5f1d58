/** Saves the filtered entries as a file for a spreadsheet or a program. */
import { Button, Menu } from '@mantine/core';
import type { ReactNode } from 'react';
import { useAttempt } from '../shared/forms/attempt.js';
import { Problem } from '../shared/ui/problem.js';
import type { AuditSearch } from './audit-search.js';
import { text } from './audit.text.js';
import { saveAudit } from './save-audit.js';

export function ExportMenu({ search }: { readonly search: AuditSearch }): ReactNode {
  const { working, refused, attempt } = useAttempt();
  const save = (as: 'csv' | 'json'): Promise<void> => attempt(() => saveAudit(search, as));
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

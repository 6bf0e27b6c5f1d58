/** The list of credentials. */
import { Select } from '@mantine/core';
import type { ReactNode } from 'react';
import { serviceNow } from '../shared/api/client.js';
import type { SearchOf } from '../shared/api/crud.js';
import { columnsOf } from '../shared/ui/data-table.js';
import { none } from '../shared/ui/format.js';
import { listPage, nameColumn, updatedColumn, type FiltersProps } from '../shared/ui/list-page.js';
import { UsedBy } from '../shared/ui/used-by.js';
import { CertificateEnd } from './certificate-end.js';
import { credentials, type Credential } from './credentials.js';
import { endsBefore } from './credentials-search.js';
import { text } from './credentials.text.js';

const columns = columnsOf<Credential>([
  nameColumn('credential'),
  [text.type, (row) => text.types[row.key_type]],
  [
    text.ends,
    (row) => (row.certificate === null ? none : <CertificateEnd certificate={row.certificate} />),
    { sort: 'not_after' },
  ],
  [
    text.serverNames,
    (row) => (row.certificate?.subject_alt_names ?? row.server_names).join(', ') || none,
    { minor: true, cut: true },
  ],
  [text.usedBy, (row) => <UsedBy users={row.in_use_by} total={row.in_use_by.length} />, { cut: true }],
  updatedColumn,
]);

export const CredentialsPage = listPage({
  of: {
    ...credentials,
    list: (search: SearchOf<'credential'>) =>
      credentials.list({ ...search, expires_before: endsBefore(search.expires_before, serviceNow()) }),
  },
  text,
  columns,
  choices: [{ name: 'key_type', label: text.type, any: text.anyType, words: text.types, width: 190 }],
  Filters: EndingSoon,
  // Certificates that end next come first, other credentials last.
  sortedBy: 'not_after',
});

function EndingSoon({ search, onFilter }: FiltersProps<SearchOf<'credential'>>): ReactNode {
  return (
    <Select
      aria-label={text.ends}
      placeholder={text.anyEnd}
      data={[{ value: 'soon', label: text.endingSoon }]}
      value={search.expires_before === undefined ? null : 'soon'}
      onChange={(chosen) => onFilter({ expires_before: chosen ?? undefined })}
      clearable
      w={240}
    />
  );
}

/** The list of credentials. */
import { Select } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useMay } from '../shared/session.js';
import { columnsOf } from '../shared/ui/data-table.js';
import { formatCount, none } from '../shared/ui/format.js';
import { LinkButton } from '../shared/ui/links.js';
import { ResourceLink } from '../shared/ui/resource-link.js';
import { ResourceList } from '../shared/ui/resource-list.js';
import { When } from '../shared/ui/when.js';
import { CertificateEnd } from './certificate-end.js';
import { credentialsQuery } from './credentials.js';
import type { Credential } from './credentials.js';
import { keyTypes } from './credentials-search.js';
import type { CredentialsSearch } from './credentials-search.js';
import { text } from './credentials.text.js';

const columns = columnsOf<Credential>([
  [text.name, (row) => <ResourceLink type="credential" id={row.id} name={row.name} />, { sort: 'name' }],
  [text.type, (row) => text.types[row.key_type]],
  [text.ends, (row) => <CertificateEnd certificate={row.certificate} />],
  [
    text.serverNames,
    (row) => (row.certificate?.subject_alt_names ?? row.server_names).join(', ') || none,
    { minor: true },
  ],
  [
    text.usedBy,
    (row) => (row.in_use_by.length === 0 ? text.unusedShort : text.users(formatCount(row.in_use_by.length))),
    { numeric: true },
  ],
  [text.updated, (row) => <When at={row.updated_at} />, { minor: true, sort: 'updated_at' }],
]);

export function CredentialsPage(): ReactNode {
  const search = useSearch({ from: '/credentials' });
  const navigate = useNavigate({ from: '/credentials' });
  const mayEdit = useMay('operator');
  const show = (next: CredentialsSearch, replace: boolean): void => void navigate({ search: next, replace });
  return (
    <ResourceList
      text={text}
      search={search}
      onSearch={show}
      query={useQuery(credentialsQuery(search))}
      columns={columns}
      add={mayEdit && <LinkButton to="/credentials/new">{text.add}</LinkButton>}
      filters={<Filters search={search} onSearch={show} />}
    />
  );
}

interface FiltersProps {
  readonly search: CredentialsSearch;
  readonly onSearch: (search: CredentialsSearch, replace: boolean) => void;
}

const soonDays = 30;

function Filters({ search, onSearch }: FiltersProps): ReactNode {
  const filter = (changed: Partial<CredentialsSearch>): void =>
    onSearch({ ...search, ...changed, page: undefined }, true);
  const soon = (): string => new Date(Date.now() + soonDays * 86_400_000).toISOString();
  return (
    <>
      <Select
        aria-label={text.type}
        placeholder={text.anyType}
        data={keyTypes.map((value) => ({ value, label: text.types[value] }))}
        value={search.key_type ?? null}
        onChange={(keyType) => filter({ key_type: keyType ?? undefined })}
        clearable
        w={190}
      />
      <Select
        aria-label={text.endsBefore}
        placeholder={text.anyEnd}
        data={[{ value: 'soon', label: `${text.endsBefore} ${text.endingSoon}` }]}
        value={search.expires_before === undefined ? null : 'soon'}
        onChange={(chosen) => filter({ expires_before: chosen === null ? undefined : soon() })}
        clearable
        w={280}
      />
    </>
  );
}

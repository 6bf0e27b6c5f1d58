/** Who did what, in sentences, with filters that the address keeps. An entry opens beside the list, and its address can be sent to others. */
import { Checkbox, Select, Text, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { TimeField } from '../shared/forms/time-field.js';
import { NoRows } from '../shared/ui/empty.js';
import { FilterBar } from '../shared/ui/filter-bar.js';
import { Page } from '../shared/ui/page.js';
import { TextLink } from '../shared/ui/links.js';
import { Pager } from '../shared/ui/data-table.js';
import { NotYet } from '../shared/ui/page-skeleton.js';
import { typeNames } from '../shared/ui/resource-link.js';
import { useTyped } from '../shared/ui/typed.js';
import { auditQuery } from './audit.js';
import type { AuditSearch } from './audit-search.js';
import { text } from './audit.text.js';
import { Entries } from './entries.js';
import { EntryDrawer } from './entry-drawer.js';
import { ExportMenu } from './export-menu.js';

export function AuditPage(): ReactNode {
  const search = useSearch({ from: '/audit' });
  const navigate = useNavigate({ from: '/audit' });
  const { data, error, refetch } = useQuery(auditQuery(search));
  const { entry, changes: _shown, page = 1, ...filters } = search;
  const filtered = Object.values(filters).some((value) => value !== undefined);
  return (
    <Page title={text.title} actions={<ExportMenu search={search} />}>
      <Filters search={search} />
      {data?.total === 0 && (
        <NoRows filtered={filtered} title={text.emptyTitle}>
          {text.empty}
        </NoRows>
      )}
      {data === undefined && <NotYet error={error} refetch={refetch} height={400} />}
      {data !== undefined && data.total > 0 && (
        <>
          <Entries entries={data.items} />
          <Pager page={page} total={data.total} onPage={(to) => void navigate({ search: { ...search, page: to } })} />
        </>
      )}
      <EntryDrawer
        id={entry}
        onClose={() =>
          void navigate({ search: { ...search, entry: undefined, changes: undefined }, resetScroll: false })
        }
      />
    </Page>
  );
}

const types = Object.entries(typeNames).map(([value, label]) => ({ value, label }));
const verbOptions = Object.entries(text.verbs).map(([value, label]) => ({ value, label }));

function Filters({ search }: { readonly search: AuditSearch }): ReactNode {
  const navigate = useNavigate({ from: '/audit' });
  const filter = (changed: Partial<AuditSearch>): void =>
    void navigate({ search: { ...search, ...changed, page: undefined, entry: undefined }, replace: true });
  const find = useTyped(search.q ?? '', (q) => filter({ q }));
  const actor = useTyped(search.actor ?? '', (value) => filter({ actor: value }));
  const [typeOfAction, verb = null] = search.action?.split('.') ?? [];
  const type = search.resource_type ?? typeOfAction ?? null;
  return (
    <FilterBar find={<TextInput {...find} type="search" aria-label={text.find} placeholder={text.find} />} folded>
      <Select
        aria-label={text.resourceType}
        placeholder={text.anyType}
        data={types}
        value={type}
        onChange={(value) => filter({ resource_type: value ?? undefined, action: undefined, resource_id: undefined })}
        clearable
        w={170}
      />
      <Select
        aria-label={text.verb}
        placeholder={type === null ? text.verbHint : text.anyVerb}
        data={verbOptions}
        value={verb}
        onChange={(value) => filter({ action: value === null ? undefined : `${type}.${value}` })}
        disabled={type === null}
        clearable
        w={190}
      />
      <TextInput {...actor} aria-label={text.actorFilter} placeholder={text.actorFilter} w={140} />
      <TimeField label={text.from} value={search.from} onChange={(from) => filter({ from })} />
      <TimeField label={text.to} value={search.to} onChange={(to) => filter({ to })} />
      <Checkbox
        label={text.signIns}
        checked={search.sign_ins !== undefined}
        onChange={({ currentTarget }) => filter({ sign_ins: currentTarget.checked ? 'true' : undefined })}
      />
      {search.resource_id !== undefined && (
        <Text size="sm" c="dimmed">
          {text.ofOne} <TextLink to="/audit">{text.clear}</TextLink>
        </Text>
      )}
    </FilterBar>
  );
}

/** Incidents: open ones first, then all of the last 90 days; filters are in the address. */
import { Group, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { Choices } from '../shared/ui/choices.js';
import { columnsOf } from '../shared/ui/data-table.js';
import { Empty } from '../shared/ui/empty.js';
import { formatCount, none } from '../shared/ui/format.js';
import { TextLink } from '../shared/ui/links.js';
import { ListTable } from '../shared/ui/list-table.js';
import { Page } from '../shared/ui/page.js';
import { Section } from '../shared/ui/section.js';
import { typeNames } from '../shared/ui/resource-link.js';
import { State } from '../shared/ui/state.js';
import { StateOf } from '../shared/ui/state-of.js';
import { When } from '../shared/ui/when.js';
import { incidentsQuery, type Incident } from './incidents.js';
import type { incidentsSearch } from './incidents-search.js';
import { text } from './incidents.text.js';
import { Lasted, Status } from './parts.js';

type Search = ReturnType<typeof incidentsSearch>;

const name = [
  text.what,
  ({ id, resource }: Incident) => (
    <TextLink to="/incidents/$id" params={{ id }} search={{ resource_id: resource.id }}>
      {resource.name}
    </TextLink>
  ),
  { cut: true },
] as const;
const shared = [
  [text.type, ({ resource }: Incident) => typeNames[resource.type] ?? resource.type, { minor: true }],
  [text.status, (row: Incident) => <Status incident={row} />],
  [text.why, (row: Incident) => row.reason ?? none, { minor: true }],
  [text.began, (row: Incident) => <When at={row.began_at} />],
  [text.lasted, (row: Incident) => <Lasted incident={row} />, { numeric: true }],
] as const;

const openColumns = columnsOf<Incident>([name, ...shared]);
const columns = columnsOf<Incident>([
  name,
  ...shared,
  [
    text.ended,
    (row) => (row.ended_at === null ? <StateOf kind="incident" is="lasts" /> : <When at={row.ended_at} />),
    { minor: true },
  ],
]);

export function IncidentsPage(): ReactNode {
  const search = useSearch({ from: '/incidents' });
  const navigate = useNavigate({ from: '/incidents' });
  const { page, ...filters } = search;
  const filtered = Object.values(filters).some((value) => value !== undefined);
  const filter = (changed: Partial<Search>): void =>
    void navigate({ search: { ...search, ...changed, page: undefined }, replace: true });
  const key = ({ id }: Incident): string => id;
  const open = useQuery(incidentsQuery({ ...filters, open: 'true' }));
  const more = (open.data?.total ?? 0) - (open.data?.items.length ?? 0);
  return (
    <Page title={text.title}>
      <Group gap="xs">
        <Choices
          choices={[{ name: 'resource_type', label: text.type, any: text.anyType, words: text.types }]}
          search={search}
          onFilter={filter}
        />
        {filtered && <TextLink to="/incidents">{text.clear}</TextLink>}
      </Group>
      <Section title={text.open}>
        <ListTable
          caption={text.openCaption}
          columns={openColumns}
          query={open}
          rowKey={key}
          empty={
            <Text size="sm" component="div">
              <State mood="good">{text.none}</State>
            </Text>
          }
        />
        {more > 0 && (
          <Text size="sm" c="dimmed">
            {text.more(formatCount(more))}
          </Text>
        )}
      </Section>
      <Section title={text.all}>
        <ListTable
          caption={text.allCaption}
          columns={columns}
          query={useQuery(incidentsQuery({ ...filters, page }))}
          rowKey={key}
          empty={<Empty title={filtered ? text.nothingFound : text.emptyTitle}>{!filtered && text.empty}</Empty>}
          paging={{ page: page ?? 1, onPage: (to) => void navigate({ search: { ...search, page: to } }) }}
        />
      </Section>
    </Page>
  );
}

/** The list of rollouts, newest first; its filters are in the address. */
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { ResourceSelect } from '../shared/forms/resource-select.js';
import { Choices } from '../shared/ui/choices.js';
import { columnsOf } from '../shared/ui/data-table.js';
import { NoRows } from '../shared/ui/empty.js';
import { FilterBar } from '../shared/ui/filter-bar.js';
import { LinkButton, TextLink } from '../shared/ui/links.js';
import { ListTable } from '../shared/ui/list-table.js';
import { Page } from '../shared/ui/page.js';
import { StateOf } from '../shared/ui/state-of.js';
import { wordsOf } from '../shared/ui/states.js';
import { When } from '../shared/ui/when.js';
import { Counts } from './counts.js';
import { titleOf } from './title.js';
import { rolloutsQuery, type Rollout } from './rollouts.js';
import type { RolloutsSearch } from './rollouts-search.js';
import { text } from './rollouts.text.js';

const columns = columnsOf<Rollout>([
  [
    text.change,
    (row) => (
      <TextLink to="/rollouts/$id" params={{ id: row.id }}>
        {titleOf(row)}
      </TextLink>
    ),
  ],
  [text.state, (row) => <StateOf kind="rollout" is={row.state} />],
  [text.wave, (row) => text.waveOf(row.wave, row.waves.length), { numeric: true }],
  [text.progress, (row) => <Counts waves={row.waves} />],
  [text.policy, (row) => row.policy.name, { minor: true }],
  [text.started, (row) => <When at={row.started_at} />, { minor: true }],
]);

export function RolloutsPage(): ReactNode {
  const search = useSearch({ from: '/rollouts' });
  const navigate = useNavigate({ from: '/rollouts' });
  const { page, ...filters } = search;
  const filtered = Object.values(filters).some((value) => value !== undefined);
  const filter = (changed: Partial<RolloutsSearch>): void =>
    void navigate({ search: { ...search, ...changed, page: undefined }, replace: true });
  return (
    <Page
      title={text.title}
      actions={
        <LinkButton variant="default" to="/rollout-policies">
          {text.policies}
        </LinkButton>
      }
    >
      <FilterBar
        find={
          <ResourceSelect
            kind={{ type: 'node' }}
            ariaLabel={text.node}
            placeholder={text.anyNode}
            value={search.node_id}
            onChange={(id) => filter({ node_id: id === '' ? undefined : id })}
            clearable
          />
        }
        folded
      >
        <Choices
          choices={[{ name: 'state', label: text.state, any: text.anyState, words: wordsOf('rollout') }]}
          search={search}
          onFilter={filter}
        />
      </FilterBar>
      <ListTable
        caption={text.caption}
        columns={columns}
        query={useQuery(rolloutsQuery(search))}
        rowKey={({ id }) => id}
        empty={
          <NoRows filtered={filtered} title={text.emptyTitle}>
            {text.empty}
          </NoRows>
        }
        paging={{ page: page ?? 1, onPage: (to) => void navigate({ search: { ...search, page: to } }) }}
      />
    </Page>
  );
}

/** The list of chains: whether each works, and the nodes that it goes through. */
import { Select } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { ResourceSelect } from '../shared/forms/resource-select.js';
import { useMay } from '../shared/session.js';
import { columnsOf } from '../shared/ui/data-table.js';
import { LinkButton } from '../shared/ui/links.js';
import { ResourceLink } from '../shared/ui/resource-link.js';
import { ResourceList } from '../shared/ui/resource-list.js';
import { When } from '../shared/ui/when.js';
import { HealthState, StatusState } from './chain-states.js';
import { chainsQuery } from './chains.js';
import type { Chain } from './chains.js';
import { healths, statuses } from './chains-search.js';
import type { ChainsSearch } from './chains-search.js';
import { text } from './chains.text.js';

const columns = columnsOf<Chain>([
  [text.name, (row) => <ResourceLink type="l4_chain" id={row.id} name={row.name} />, { sort: 'name' }],
  [text.health, (row) => <HealthState health={row.health} />],
  [text.status, (row) => <StatusState status={row.status} />],
  [text.payload, (row) => text.payloads[row.payload], { minor: true }],
  [text.path, (row) => pathOf(row), { minor: true }],
  [text.deployedAt, (row) => <When at={row.deployed_at} />, { minor: true }],
]);

/** What runs; of a chain that was never deployed, what would. */
function pathOf({ hop_status: hops }: Chain): string {
  const deployed = hops.filter((hop) => hop.deployed);
  return (deployed.length > 0 ? deployed : hops).map(({ node_name: name }) => name).join(text.to);
}

export function ChainsPage(): ReactNode {
  const search = useSearch({ from: '/chains' });
  const navigate = useNavigate({ from: '/chains' });
  const mayEdit = useMay('operator');
  const show = (next: ChainsSearch, replace: boolean): void => void navigate({ search: next, replace });
  return (
    <ResourceList
      text={text}
      search={search}
      onSearch={show}
      query={useQuery(chainsQuery(search))}
      columns={columns}
      add={mayEdit && <LinkButton to="/chains/new">{text.add}</LinkButton>}
      filters={<Filters search={search} onSearch={show} />}
    />
  );
}

interface FiltersProps {
  readonly search: ChainsSearch;
  readonly onSearch: (search: ChainsSearch, replace: boolean) => void;
}

function Filters({ search, onSearch }: FiltersProps): ReactNode {
  const filter = (changed: Partial<ChainsSearch>): void => onSearch({ ...search, ...changed, page: undefined }, true);
  return (
    <>
      <Select
        aria-label={text.health}
        placeholder={text.anyHealth}
        data={healths.map((value) => ({ value, label: text.healths[value] }))}
        value={search.health ?? null}
        onChange={(health) => filter({ health: health ?? undefined })}
        clearable
        w={150}
      />
      <Select
        aria-label={text.status}
        placeholder={text.anyStatus}
        data={statuses.map((value) => ({ value, label: text.statuses[value] }))}
        value={search.status ?? null}
        onChange={(status) => filter({ status: status ?? undefined })}
        clearable
        w={170}
      />
      <ResourceSelect
        kind={{ type: 'node' }}
        ariaLabel={text.nodeFilter}
        placeholder={text.anyNode}
        clearable
        value={search.node_id ?? ''}
        onChange={(id) => filter({ node_id: id === '' ? undefined : id })}
      />
    </>
  );
}

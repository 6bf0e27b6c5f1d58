/** The list of chains: whether each works, and the nodes that it goes through. */
import type { ReactNode } from 'react';
import type { SearchOf } from '../shared/api/crud.js';
import { ResourceSelect } from '../shared/forms/resource-select.js';
import { columnsOf } from '../shared/ui/data-table.js';
import { formatBytes, formatRate, none } from '../shared/ui/format.js';
import { listPage, nameColumn, type FiltersProps } from '../shared/ui/list-page.js';
import { StateOf } from '../shared/ui/state-of.js';
import { wordsOf } from '../shared/ui/states.js';
import { When } from '../shared/ui/when.js';
import { HealthState } from './chain-health.js';
import { chains, type Chain } from './chains.js';
import { text } from './chains.text.js';

const columns = columnsOf<Chain>([
  nameColumn('l4_chain'),
  [text.health, (row) => <HealthState health={row.health} />],
  [text.status, (row) => <StateOf kind="chain" is={row.status} />],
  [text.payload, (row) => text.payloads[row.payload], { minor: true }],
  [text.path, (row) => pathOf(row), { minor: true, cut: true }],
  [
    text.trafficNow,
    ({ traffic }) => (traffic === null ? none : `${formatBytes(traffic.bytes_per_sec)}/s`),
    { numeric: true },
  ],
  [
    text.sessionsNow,
    ({ traffic }) => (traffic === null ? none : formatRate(traffic.sessions_per_min)),
    { numeric: true, minor: true },
  ],
  [text.lastDeployed, (row) => (row.deployed_at === null ? none : <When at={row.deployed_at} />), { minor: true }],
]);

/** The path that runs, or would run if the chain was never deployed. */
function pathOf({ hop_status: hops }: Chain): string {
  const deployed = hops.filter((hop) => hop.deployed);
  return (deployed.length > 0 ? deployed : hops).map(({ node_name: name }) => name).join(text.to);
}

export const ChainsPage = listPage({
  of: chains,
  text,
  columns,
  choices: [
    { name: 'health', label: text.health, any: text.anyHealth, words: wordsOf('health'), width: 150 },
    { name: 'status', label: text.status, any: text.anyStatus, words: wordsOf('chain') },
  ],
  Filters: NodeFilter,
  find: text.find,
});

function NodeFilter({ search, onFilter }: FiltersProps<SearchOf<'l4_chain'>>): ReactNode {
  return (
    <ResourceSelect
      kind={{ type: 'node' }}
      ariaLabel={text.node}
      placeholder={text.anyNode}
      clearable
      value={search.node_id ?? ''}
      onChange={(id) => onFilter({ node_id: id === '' ? undefined : id })}
    />
  );
}

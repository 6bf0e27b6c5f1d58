/** The chains that go through a node: each by its name, and whether it works. */
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { Schemas } from '../shared/api/client.js';
import { crud } from '../shared/api/crud.js';
import { columnsOf } from '../shared/ui/data-table.js';
import { Empty } from '../shared/ui/empty.js';
import { formatBytes, formatCount, none } from '../shared/ui/format.js';
import { LinkButton } from '../shared/ui/links.js';
import { ListTable } from '../shared/ui/list-table.js';
import { ResourceLink } from '../shared/ui/resource-link.js';
import { Section } from '../shared/ui/section.js';
import { StateOf } from '../shared/ui/state-of.js';
import { text } from './nodes.text.js';

type Chain = Schemas['L4Chain'];

const chains = crud('l4_chain');

const columns = columnsOf<Chain>([
  [text.chain, ({ id, name }) => <ResourceLink type="l4_chain" id={id} name={name} />, { cut: true }],
  [
    text.state,
    ({ status, health }) =>
      status === 'draft' || status === 'disabled' ? (
        <StateOf kind="chain" is={status} />
      ) : (
        <StateOf kind="health" is={health.state} why={health.reasons.join(' ') || undefined} />
      ),
  ],
  [
    text.why,
    ({ health }) => <span style={{ overflowWrap: 'anywhere' }}>{health.reasons[0] ?? none}</span>,
    { minor: true },
  ],
  [
    text.traffic,
    ({ traffic }) => (traffic === null ? none : `${formatBytes(traffic.bytes_per_sec)}/s`),
    { numeric: true },
  ],
]);

export function NodeChains({ nodeId }: { readonly nodeId: string }): ReactNode {
  const query = useQuery(chains.list({ node_id: nodeId }));
  const { items = [], total = 0 } = query.data ?? {};
  return (
    <Section
      title={text.chains}
      actions={
        total > items.length && (
          <LinkButton variant="subtle" to="/chains" search={{ node_id: nodeId }}>
            {text.allChains(formatCount(total))}
          </LinkButton>
        )
      }
    >
      <ListTable
        caption={text.chainsCaption}
        columns={columns}
        query={query}
        rowKey={({ id }) => id}
        empty={<Empty title={text.noChains}>{text.noChainsHint}</Empty>}
      />
    </Section>
  );
}

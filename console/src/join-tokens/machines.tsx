/** The machines that have joined with a token, each as it connects and applies. */
import { Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { columnsOf, DataTable } from '../shared/ui/data-table.js';
import { none } from '../shared/ui/format.js';
import { ResourceLink } from '../shared/ui/resource-link.js';
import { Section } from '../shared/ui/section.js';
import { State } from '../shared/ui/state.js';
import { StateOf } from '../shared/ui/state-of.js';
import { When } from '../shared/ui/when.js';
import { joinTokens, machineQuery, type JoinToken } from './join-tokens.js';
import { text } from './join-tokens.text.js';
import { machineState, tokenState } from './machine-state.js';

type Joined = JoinToken['nodes'][number];

const columns = columnsOf<Joined>([
  [text.node, (row) => <ResourceLink type="node" id={row.id} name={row.name} />],
  [text.state, (row) => <HowFar id={row.id} />],
  [text.joinedAt, (row) => <When at={row.joined_at} />],
]);

function HowFar({ id }: { readonly id: string }): ReactNode {
  const { data: machine } = useQuery(machineQuery(id));
  if (machine === undefined) return none;
  const state = machineState(machine);
  return <StateOf kind="machine" is={state} />;
}

/** @param token as it was read or made; machines that have joined since are read again */
export function Machines({ token: given }: { readonly token: JoinToken }): ReactNode {
  const { data: token = given } = useQuery(joinTokens.one(given.id));
  const { nodes, used, uses } = token;
  const isOpen = tokenState(token) === 'open';
  return (
    <Section
      title={text.machinesTitle}
      actions={
        <div role="status">
          <State mood={used >= uses ? 'good' : isOpen ? 'busy' : 'idle'}>{text.progress(used, uses)}</State>
        </div>
      }
    >
      <DataTable
        caption={text.machinesCaption}
        columns={columns}
        rows={nodes}
        rowKey={({ id }) => id}
        empty={<Text size="sm">{isOpen ? text.waiting : text.nobody}</Text>}
      />
      {used > nodes.length && (
        <Text size="sm" c="dimmed">
          {text.newest(nodes.length)}
        </Text>
      )}
    </Section>
  );
}

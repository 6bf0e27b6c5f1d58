/** One L3 network: drawn, with its members and tunnels. */
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { columnsOf, DataTable } from '../shared/ui/data-table.js';
import { EnabledState } from '../shared/ui/enabled-state.js';
import { Facts } from '../shared/ui/facts.js';
import { formatCount, none } from '../shared/ui/format.js';
import { NamedLink } from '../shared/ui/named-link.js';
import { Page } from '../shared/ui/page.js';
import { Problem } from '../shared/ui/problem.js';
import { ResourceActions } from '../shared/ui/resource-actions.js';
import { ResourceLink } from '../shared/ui/resource-link.js';
import { Section } from '../shared/ui/section.js';
import { State } from '../shared/ui/state.js';
import type { Mood } from '../shared/ui/state.js';
import { When } from '../shared/ui/when.js';
import { NetworkDrawing } from './network-drawing.js';
import type { DrawnMember } from './network-drawing.js';
import { deleteNetwork, memberNodesQuery, networkQuery } from './l3-networks.js';
import type { L3Network, MemberNode } from './l3-networks.js';
import { text } from './l3-networks.text.js';

export function L3NetworkPage(): ReactNode {
  const { id } = useParams({ from: '/l3-networks/$id' });
  const { data: network, error, refetch } = useQuery(networkQuery(id));
  const { data: nodes } = useQuery(memberNodesQuery(id));
  if (network === undefined) return error && <Problem error={error} retry={() => void refetch()} />;
  const members = network.members.map((member): Member => {
    const node = nodes?.items.find(({ node_id: nodeId }) => nodeId === member.node_id);
    return { ...member, name: node?.node_name ?? '', status: node?.node_status ?? 'pending' };
  });
  return (
    <Page
      title={network.name}
      aside={<EnabledState enabled={network.enabled} />}
      actions={
        <ResourceActions
          type="l3_network"
          id={id}
          name={network.name}
          edit={{ to: '/l3-networks/$id/edit', params: { id } }}
          remove={{ run: () => deleteNetwork(id), meaning: text.removeMeaning, list: { to: '/l3-networks' } }}
        />
      }
    >
      <Section title={text.details}>
        <Facts
          facts={{
            [text.number]: network.network_id,
            [text.mtu]: text.bytes(formatCount(network.mtu)),
            [text.credential]: <NamedLink type="credential" id={network.credential_id} />,
            [text.serverName]: network.server_name,
            [text.managedBy]: network.managed_by,
            [text.created]: <When at={network.created_at} />,
            [text.updated]: <When at={network.updated_at} />,
          }}
        />
      </Section>
      <Section title={text.drawing}>
        <NetworkDrawing members={members} tunnels={network.tunnels} />
      </Section>
      <Section title={text.members}>
        <DataTable
          caption={text.memberCaption}
          columns={memberColumns}
          rows={members}
          rowKey={({ node_id: nodeId }) => nodeId}
          empty={null}
        />
      </Section>
      <Section title={text.tunnels}>
        <DataTable
          caption={text.tunnelCaption}
          columns={tunnelColumns}
          rows={network.tunnels.map((tunnel): Tunnel => ({
            ...tunnel,
            listener: nameOf(members, tunnel.listener_node_id),
            connector: nameOf(members, tunnel.connector_node_id),
          }))}
          rowKey={({ context_id: context, listener_node_id: listener }) => `${listener} ${context}`}
          empty={none}
        />
      </Section>
    </Page>
  );
}

type Member = L3Network['members'][number] & DrawnMember;
type Tunnel = L3Network['tunnels'][number] & { readonly listener: string; readonly connector: string };

const nameOf = (members: readonly Member[], id: string): string =>
  members.find(({ node_id: nodeId }) => nodeId === id)?.name ?? '';

const moods: Readonly<Record<MemberNode['node_status'], Mood>> = { online: 'good', offline: 'bad', pending: 'idle' };

const memberColumns = columnsOf<Member>([
  [text.node, (row) => <ResourceLink type="node" id={row.node_id} name={row.name || null} />],
  [text.status, (row) => <State mood={moods[row.status]}>{text.nodeStates[row.status]}</State>],
  [text.addresses, (row) => row.addresses.join(', ')],
  [text.routes, (row) => row.routes.join(', ') || none],
  [text.interface, (row) => row.interface_name, { minor: true }],
  [text.features, (row) => row.features?.join(', ') ?? none, { minor: true }],
]);

const tunnelColumns = columnsOf<Tunnel>([
  [text.connector, (row) => <ResourceLink type="node" id={row.connector_node_id} name={row.connector || null} />],
  [text.listener, (row) => <ResourceLink type="node" id={row.listener_node_id} name={row.listener || null} />],
  [text.listenAddr, (row) => `${row.listen_addr}:${row.listen_port}`],
  [text.contextId, (row) => row.context_id, { numeric: true, minor: true }],
]);

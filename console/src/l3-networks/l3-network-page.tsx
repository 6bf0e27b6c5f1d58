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

const member = columnsOf<Member>();
const memberColumns = member.columns([
  member.display({
    id: 'node',
    header: text.node,
    cell: ({ row: { original } }) => <ResourceLink type="node" id={original.node_id} name={original.name || null} />,
  }),
  member.display({
    id: 'status',
    header: text.status,
    cell: ({ row: { original } }) => <State mood={moods[original.status]}>{text.nodeStates[original.status]}</State>,
  }),
  member.display({
    id: 'addresses',
    header: text.addresses,
    cell: ({ row: { original } }) => original.addresses.join(', '),
  }),
  member.display({
    id: 'routes',
    header: text.routes,
    cell: ({ row: { original } }) => original.routes.join(', ') || none,
  }),
  member.accessor('interface_name', { header: text.interface, meta: { minor: true } }),
  member.display({
    id: 'features',
    header: text.features,
    meta: { minor: true },
    cell: ({ row: { original } }) => original.features?.join(', ') ?? none,
  }),
]);

const tunnel = columnsOf<Tunnel>();
const tunnelColumns = tunnel.columns([
  tunnel.display({
    id: 'connector',
    header: text.connector,
    cell: ({ row: { original } }) => (
      <ResourceLink type="node" id={original.connector_node_id} name={original.connector || null} />
    ),
  }),
  tunnel.display({
    id: 'listener',
    header: text.listener,
    cell: ({ row: { original } }) => (
      <ResourceLink type="node" id={original.listener_node_id} name={original.listener || null} />
    ),
  }),
  tunnel.display({
    id: 'address',
    header: text.listenAddr,
    cell: ({ row: { original } }) => `${original.listen_addr}:${original.listen_port}`,
  }),
  tunnel.display({
    id: 'context',
    header: text.contextId,
    meta: { numeric: true, minor: true },
    cell: ({ row: { original } }) => original.context_id,
  }),
]);

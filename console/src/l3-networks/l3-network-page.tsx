/** One L3 network: drawn, with its members and tunnels. */
import { useQuery } from '@tanstack/react-query';
import { columnsOf, DataTable } from '../shared/ui/data-table.js';
import { EnabledState } from '../shared/ui/enabled-state.js';
import { formatAddress, formatCount, none } from '../shared/ui/format.js';
import { NamedLink } from '../shared/ui/named-link.js';
import { StateOf } from '../shared/ui/state-of.js';
import { ResourceLink } from '../shared/ui/resource-link.js';
import { ResourcePage, resourcePage } from '../shared/ui/resource-page.js';
import { Section } from '../shared/ui/section.js';
import { NetworkDrawing, type DrawnMember } from './network-drawing.js';
import { memberNodesQuery, networks, type L3Network } from './l3-networks.js';
import { text } from './l3-networks.text.js';

export const L3NetworkPage = resourcePage(networks, ({ resource: network }) => {
  const { data: nodes } = useQuery(memberNodesQuery(network.id));
  const members = network.members.map((member): Member => {
    const node = nodes?.items.find(({ node_id: nodeId }) => nodeId === member.node_id);
    return { ...member, name: node?.node_name ?? '', status: node?.node_status };
  });
  return (
    <ResourcePage
      of={networks}
      resource={network}
      aside={<EnabledState enabled={network.enabled} />}
      removeMeaning={text.removeMeaning}
      facts={{
        [text.number]: network.network_id,
        [text.mtu]: text.bytes(formatCount(network.mtu)),
        [text.credential]: <NamedLink type="credential" id={network.credential_id} />,
        [text.serverName]: network.server_name,
      }}
    >
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
    </ResourcePage>
  );
});

type Member = L3Network['members'][number] & DrawnMember;
type Tunnel = L3Network['tunnels'][number] & { readonly listener: string; readonly connector: string };

const nameOf = (members: readonly Member[], id: string): string =>
  members.find(({ node_id: nodeId }) => nodeId === id)?.name ?? '';

const memberColumns = columnsOf<Member>([
  [text.node, (row) => <ResourceLink type="node" id={row.node_id} name={row.name || null} />],
  [text.status, (row) => row.status && <StateOf kind="node" is={row.status} />],
  [text.addresses, (row) => row.addresses.join(', ')],
  [text.routes, (row) => row.routes.join(', ') || none],
  [text.interface, (row) => row.interface_name, { minor: true }],
  [text.features, (row) => row.features?.join(', ') ?? none, { minor: true }],
]);

const tunnelColumns = columnsOf<Tunnel>([
  [text.connector, (row) => <ResourceLink type="node" id={row.connector_node_id} name={row.connector || null} />],
  [text.listener, (row) => <ResourceLink type="node" id={row.listener_node_id} name={row.listener || null} />],
  [text.listenAddr, (row) => formatAddress(row.listen_addr, row.listen_port)],
  [text.contextId, (row) => row.context_id, { numeric: true, minor: true }],
]);

/**
 * The listeners that are intended on a node, with what its agent reports, and those that run without being in a current
 * definition: of an edited chain what is deployed, and unexpected ones.
 */
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { Schemas } from '../shared/api/client.js';
import { columnsOf, DataTable } from '../shared/ui/data-table.js';
import { Empty } from '../shared/ui/empty.js';
import { formatAddress } from '../shared/ui/format.js';
import { ListenerState } from '../shared/ui/listener-state.js';
import { Problem } from '../shared/ui/problem.js';
import { ResourceLink } from '../shared/ui/resource-link.js';
import { Section } from '../shared/ui/section.js';
import { chainsQuery, intendedQuery, runtimeQuery } from './nodes.js';
import { text } from './nodes.text.js';

interface Row {
  readonly transport: string;
  readonly listenAddr: string;
  readonly listenPort: number;
  readonly users: readonly Pick<Schemas['PortRoute'], 'resourceType' | 'resourceId' | 'resourceName'>[];
  /** Whether a deployed definition has it. */
  readonly deployed: boolean;
  /** The agent's word; null while no report tells. */
  readonly state: string | null;
  /** The node is not online: this is what its agent said last. */
  readonly stale: boolean;
}

const keyOf = ({ transport, listenAddr, listenPort }: Row): string => `${transport} ${listenAddr} ${listenPort}`;

const columns = columnsOf<Row>([
  [text.transport, (row) => row.transport, { minor: true }],
  [text.listen, (row) => formatAddress(row.listenAddr, row.listenPort)],
  [text.usedFor, (row) => <Users users={row.users} />, { cut: true }],
  [text.runs, (row) => <ListenerState {...row} />],
]);

function Users({ users }: Pick<Row, 'users'>): ReactNode {
  return users.map(({ resourceType, resourceId, resourceName }, index) => (
    <span key={resourceId}>
      {index > 0 && ', '}
      <ResourceLink type={resourceType} id={resourceId} name={resourceName} />
    </span>
  ));
}

export function Listeners({ nodeId }: { readonly nodeId: string }): ReactNode {
  const intended = useQuery(intendedQuery(nodeId));
  const deployed = useQuery(runtimeQuery(nodeId, true));
  const unexpected = useQuery(runtimeQuery(nodeId, false));
  const chains = useQuery(chainsQuery(nodeId));
  const failed = [intended, deployed, unexpected].find(({ data, error }) => data === undefined && error !== null);
  if (failed?.error) {
    return (
      <Section title={text.listeners}>
        <Problem error={failed.error} retry={() => void failed.refetch()} />
      </Section>
    );
  }
  const drawn = intended.data?.items.map(({ routes, runtimeState, runtimeStale, ...listener }): Row => {
    const users = new Map(routes.map((route) => [route.resourceId, route]));
    const isDeployed = routes.some((route) => route.deployed);
    return { ...listener, users: [...users.values()], deployed: isDeployed, state: runtimeState, stale: runtimeStale };
  });
  const usersOf = ({ listenAddr, listenPort }: Pick<Row, 'listenAddr' | 'listenPort'>): Row['users'] =>
    [...(chains.data?.values() ?? [])]
      .filter(({ hop_status: hops }) =>
        hops.some(
          (hop) =>
            hop.deployed && hop.node_id === nodeId && hop.listen_addr === listenAddr && hop.listen_port === listenPort,
        ),
      )
      .map(({ id, name }) => ({ resourceType: 'l4_chain', resourceId: id, resourceName: name }));
  const rowsOf = (isDeployed: boolean, { data }: typeof deployed): readonly Row[] =>
    (data?.nodes ?? []).flatMap(({ listeners, stale }) =>
      listeners.map((one): Row => ({ ...one, users: isDeployed ? usersOf(one) : [], deployed: isDeployed, stale })),
    );
  const known = new Set(drawn?.map(keyOf));
  const others = [...rowsOf(true, deployed), ...rowsOf(false, unexpected)].filter((row) => !known.has(keyOf(row)));
  const rows = drawn && [...drawn, ...others];
  return (
    <Section title={text.listeners}>
      <DataTable
        caption={text.listenersCaption}
        columns={columns}
        rows={rows}
        rowKey={keyOf}
        empty={<Empty title={text.noListeners}>{text.noListenersHint}</Empty>}
      />
    </Section>
  );
}

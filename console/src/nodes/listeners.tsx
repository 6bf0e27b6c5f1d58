/** The listeners that are intended on a node, with what its agent reports, and unexpected ones that run. */
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
import { intendedQuery, unexpectedQuery } from './nodes.js';
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
  [text.usedFor, (row) => <Users users={row.users} />],
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
  const unexpected = useQuery(unexpectedQuery(nodeId));
  const failed = [intended, unexpected].find(({ data, error }) => data === undefined && error !== null);
  if (failed?.error) {
    return (
      <Section title={text.listeners}>
        <Problem error={failed.error} retry={() => void failed.refetch()} />
      </Section>
    );
  }
  const drawn = intended.data?.items.map(({ routes, runtimeState, runtimeStale, ...listener }): Row => {
    const users = new Map(routes.map((route) => [route.resourceId, route]));
    const deployed = routes.some((route) => route.deployed);
    return { ...listener, users: [...users.values()], deployed, state: runtimeState, stale: runtimeStale };
  });
  // A listener of a draft is listed already.
  const known = new Set(drawn?.map(keyOf));
  const others = (unexpected.data?.nodes ?? [])
    .flatMap(({ listeners, stale }) =>
      listeners.map((listener): Row => ({ ...listener, users: [], deployed: false, stale })),
    )
    .filter((row) => !known.has(keyOf(row)));
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

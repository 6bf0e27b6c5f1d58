/** Queries about the listeners of the fleet: which are intended, and which agents report. */
import type { Schemas } from '../shared/api/client.js';
import { read, type DataOf, type Operation } from '../shared/api/read.js';
import type { PortsSearch } from './ports-search.js';

export type Port = Schemas['Port'];
export type RuntimeListener = Schemas['RuntimeListener'];
type Filters = Omit<PortsSearch, 'page'>;

const follows = ['l4_chain', 'route', 'l3_network', 'listener_policy', 'connectivity', 'agent'];

type PortTable = DataOf<Operation<'/api/nodes/ports', 'get'>>;

/** What is deployed, and not known to run, comes first; otherwise the API's order, by node, stays. */
function missingFirst(table: PortTable): PortTable {
  const isMissing = ({ routes, runtimeState, runtimeStale }: Port): boolean =>
    (runtimeState !== 'running' || runtimeStale) && routes.some(({ deployed }) => deployed);
  return { ...table, items: table.items.toSorted((a, b) => Number(isMissing(b)) - Number(isMissing(a))) };
}

export const portsQuery = ({ running, ...filters }: Filters) => {
  const query = { ...filters, running: running && running === 'true' };
  return { ...read('node', '/api/nodes/ports', { query }, { follows, keepsPrevious: true }), select: missingFirst };
};

/** The nodes, with the listeners that they run and no deployed definition has. */
export const unexpectedQuery = ({ node_id, transport, listen_port }: Filters) => {
  const query = { node_id, transport, listen_port, intended: false };
  return read('node', '/api/nodes/ports/runtime', { query }, { follows, keepsPrevious: true });
};

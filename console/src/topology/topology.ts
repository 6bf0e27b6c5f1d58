/**
 * The queries of the topology: groups or nodes with their links, the keys to group by, and nodes that match a search.
 */
import type { Schemas } from '../shared/api/client.js';
import { read } from '../shared/api/read.js';

export type Topology = Schemas['GroupedTopology'] | Schemas['Topology'];

/** The part of the fleet that is shown. */
export interface View {
  /** Undefined: each node. */
  readonly groupBy: string | undefined;
  /** The open group, empty for nodes without the label; undefined: none. */
  readonly group: string | undefined;
  readonly onlyWrong: boolean;
}

export const labelKeysQuery = read('node', '/api/nodes/labels', {});

export const topologyQuery = ({ groupBy, group, onlyWrong }: View, enabled: boolean) => {
  const query = { group_by: groupBy, group, only: onlyWrong ? ('wrong' as const) : undefined };
  const reading = { follows: ['agent', 'l4_chain'], keepsPrevious: true, enabled } as const;
  return read('node', '/api/topology', { query }, reading);
};

const found = 8;

/** Nodes by a part of their name, to find the groups that hold them. */
export const searchedQuery = (q: string) =>
  read('node', '/api/nodes', { query: { q, page_size: found } }, { keepsPrevious: true, enabled: q !== '' });

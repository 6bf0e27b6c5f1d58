/** The words of the topology. */
import { formatCount } from '../shared/ui/format.js';

const counted = (one: string, many: string) => (count: number) => `${formatCount(count)} ${count === 1 ? one : many}`;

export const text = {
  title: 'Topology',
  caption: 'Nodes or groups of them, and the chains between them',
  find: 'Find a node or group',
  groupBy: 'Group by',
  ungrouped: 'Each node',
  onlyWrong: 'Only what is wrong',
  nothingWrong: 'Nothing is wrong here',
  noSuchGroup: 'No node is in this group',
  noLabels: (most: string) =>
    `More than ${most} nodes are drawn in groups. No node has a label yet: give nodes one, such as region.`,
  withoutLabel: (key: string) => `no ${key}`,
  allGroups: (key: string) => `All of ${key}`,
  neighbour: 'of another group',
  emptyTitle: 'No nodes yet',
  empty: 'Add nodes; links appear once chains are deployed over them.',
  addNode: 'Add machines',
  nodes: counted('node', 'nodes'),
  offline: (count: number) => `${formatCount(count)} offline`,
  rejected: (count: number) => `${formatCount(count)} rejected`,
  pending: (count: number) => `${formatCount(count)} never connected`,
  chainsDown: counted('chain down', 'chains down'),
  chains: counted('chain', 'chains'),
  allWell: 'all well',
  rejects: 'configuration rejected',
  found: (count: number) => `${formatCount(count)} found`,
  legend: 'Arrows go as traffic does. Red: a chain over it is down; orange: degraded; dashed: nothing reported.',
  tables: { shapes: 'Nodes', links: 'Links' },
  tableOf: 'What is drawn, as a table',
  name: 'Name',
  state: 'State',
  chainsColumn: 'Chains',
  from: 'From',
  to: 'To',
  roundTrip: 'Round trip',
  noLinks: 'No deployed chain runs between them.',
} as const;

/** The search parameters of the topology. */
import { pageOf, textOf, wordOf, type Search } from '../shared/search.js';

/** In place of a key: each node is drawn. No key of a label has this sign. */
export const ungrouped = '*';

export const topologySearch = (search: Search) => ({
  /** A part of a name; the drawing moves there, and the rest is dimmed. */
  q: textOf(search, 'q'),
  /** The key of the label that nodes are grouped by. */
  group_by: textOf(search, 'group_by'),
  /** The group that is open. */
  group: textOf(search, 'group'),
  /** The open group is that of nodes without the label. */
  unlabelled: wordOf(search, 'unlabelled', ['true']),
  only: wordOf(search, 'only', ['wrong']),
  table: wordOf(search, 'table', ['links']),
  page: pageOf(search),
});

export type TopologySearch = ReturnType<typeof topologySearch>;

/** What the address of the topology holds. */
import { textOf, type Search } from '../shared/search.js';

export const topologySearch = (search: Search) => ({
  /** A part of a name, or of a label; what has none of it is dimmed. */
  q: textOf(search, 'q'),
  /** The key of the label that nodes are grouped by. */
  group_by: textOf(search, 'group_by'),
});

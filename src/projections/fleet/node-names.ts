/**
 * The names of all nodes, sorted as in lists. Sorting ten thousand takes some 20 ms, so the last list is kept until the
 * fold has moved on. Implements `docs/contract/rest.md#port-management`, items sorted by node name.
 */
import type { Fleet } from '../../domain/fleet/fleet.js';
import { nameKey } from '../../domain/resource/meta.js';
import { compareText } from '../../kernel/compare-text.js';

export interface NodeName {
  readonly id: string;
  readonly name: string;
}

/** @returns a function that gives the nodes by name without case, then by id */
export function createNodeNames(fleet: () => Fleet): () => readonly NodeName[] {
  let last: { readonly revision: number; readonly names: readonly NodeName[] } | undefined;
  return () => {
    const revision = fleet().revision.value;
    if (last?.revision !== revision) last = { revision, names: sortedNames(fleet().tables.node.values()) };
    return last.names;
  };
}

function sortedNames(nodes: Iterable<NodeName>): readonly NodeName[] {
  return Array.from(nodes, ({ id, name }) => ({ id, name, key: nameKey(name) }))
    .sort((a, b) => compareText(a.key, b.key) || compareText(a.id, b.id))
    .map(({ id, name }) => ({ id, name }));
}

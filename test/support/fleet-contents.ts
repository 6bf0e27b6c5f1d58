/** The compiled content of every node of a fleet, apart from its generation. */
import { compileNode } from '../../src/domain/compile/compile-node.js';
import type { Fleet } from '../../src/domain/fleet/fleet.js';
import { canonicalJson } from '../../src/kernel/json.js';

export interface NodeContent {
  readonly generation: number;
  /** Canonical JSON of the snapshot without its generation. */
  readonly content: string;
}

/** Compiles every node. */
export function contentsOf(fleet: Fleet): ReadonlyMap<string, NodeContent> {
  return new Map(
    [...fleet.tables.node.ids()].map((id) => {
      const { generation, ...content } = compileNode(fleet, id);
      return [id, { generation, content: canonicalJson(content) }];
    }),
  );
}

/** Ids of new nodes and of nodes whose content has changed. */
export function changedNodes(
  before: ReadonlyMap<string, NodeContent>,
  after: ReadonlyMap<string, NodeContent>,
): ReadonlySet<string> {
  return new Set([...after].flatMap(([id, { content }]) => (before.get(id)?.content === content ? [] : [id])));
}

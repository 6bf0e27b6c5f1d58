/** What every node of a fleet would be sent, its generation apart from its content. */
import { compileNode } from '../../src/domain/compile/compile-node.js';
import type { Fleet } from '../../src/domain/fleet/fleet.js';
import { canonicalJson } from '../../src/kernel/json.js';

export interface NodeContent {
  readonly generation: number;
  /** Canonical JSON of everything but the generation. */
  readonly content: string;
}

/** Compiles every node there is. */
export function contentsOf(fleet: Fleet): ReadonlyMap<string, NodeContent> {
  return new Map(
    [...fleet.tables.node.ids()].map((id) => {
      const { generation, ...content } = compileNode(fleet, id);
      return [id, { generation, content: canonicalJson(content) }];
    }),
  );
}

/** Nodes that are there now and whose content was another one before, new nodes among them. */
export function changedNodes(
  before: ReadonlyMap<string, NodeContent>,
  after: ReadonlyMap<string, NodeContent>,
): ReadonlySet<string> {
  return new Set([...after].flatMap(([id, { content }]) => (before.get(id)?.content === content ? [] : [id])));
}

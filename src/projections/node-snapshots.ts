/**
 * The configuration that each node should run, from the committed fleet: its generation, and its snapshot, compiled on demand.
 * `history/` has earlier generations. Implements `docs/contract/domain.md#generation`.
 */
import { compileNode } from '../domain/compile/compile-node.js';
import { planDeploy } from '../domain/compile/plan.js';
import type { Fleet } from '../domain/fleet/fleet.js';

export function nodeSnapshots(fleet: () => Fleet, compile: typeof compileNode = compileNode) {
  return {
    /** The newest generation of a node, or undefined for an unknown node. */
    generation: (nodeId: string) => fleet().generationOf(nodeId),
    plan: (chainId: string) => planDeploy(fleet(), chainId),
    /** Undefined for an unknown node. Secrets are sealed. @throws Error if it cannot be compiled */
    newest: (nodeId: string) => compile(fleet(), nodeId),
  };
}

/**
 * The configuration that each node should run, from the committed fleet: its generation, and its snapshot, compiled on demand.
 * `history/` has earlier generations. Implements `docs/contract/domain.md#generation`.
 */
import { compileNode } from '../domain/compile/compile-node.js';
import { planDeploy } from '../domain/compile/plan.js';
import type { Fleet } from '../domain/fleet/fleet.js';
import type { FleetQueries } from './port.js';

export interface NodeSnapshots extends Pick<FleetQueries, 'generation' | 'plan'> {
  /** Undefined for an unknown node. Secrets are sealed. @throws Error if it cannot be compiled */
  newest(nodeId: string): ReturnType<typeof compileNode>;
}

export function nodeSnapshots(fleet: () => Fleet, compile: typeof compileNode = compileNode): NodeSnapshots {
  return {
    generation: (nodeId) => fleet().generationOf(nodeId),
    plan: (chainId) => planDeploy(fleet(), chainId),
    newest: (nodeId) => compile(fleet(), nodeId),
  };
}

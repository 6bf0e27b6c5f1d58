/**
 * Held in memory, from the committed fleet. The configuration that each node should run: its generation, which is that of the last
 * command that touched it, and the snapshot that delivery replays to its agent, compiled when somebody asks. Which commands
 * touch which node, the declarations of events say; earlier generations are in `history/`. Implements
 * `docs/contract/domain.md#generation`.
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

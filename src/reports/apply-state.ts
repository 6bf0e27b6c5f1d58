/** How far a node is with a generation: the rule behind a node's `apply` and the states of a deployment. Pure. Implements `docs/contract/rest.md#l4-chains`.
 */
import type { ApplyError } from '../domain/agents/facts.js';
import type { NodeAgentFacts } from '../domain/agents/node-agent-facts.js';

/** A snapshot that was sent completely, by this or another instance. */
export interface PushFacts {
  readonly generation: number;
  /** RFC 3339. */
  readonly at: string | null;
}

export const applyStates = ['none', 'pushed', 'applied', 'rejected'] as const;

export interface ApplyState {
  readonly state: (typeof applyStates)[number];
  readonly generation: number | null;
  readonly at: string | null;
  readonly errors: readonly ApplyError[];
}

export const deploymentNodeStates = ['pending', 'pushed', 'applied', 'rejected', 'offline', 'held'] as const;

export interface DeploymentNodeState {
  readonly state: (typeof deploymentNodeStates)[number];
  readonly errors: readonly ApplyError[];
}

/** The state of a node that should run the generation. @param generation null: it has none */
export function applyState(
  generation: number | null,
  facts: Pick<NodeAgentFacts, 'applied' | 'rejected'>,
  push: PushFacts | undefined,
): ApplyState {
  const wanted = generation ?? Number.POSITIVE_INFINITY;
  const { applied, rejected } = facts;
  const hasApplied = applied !== null && applied.generation >= wanted;
  // The later of the two counts. The facts drop a reject when its generation or a later one is applied.
  if (rejected !== null && rejected.generation >= wanted && !(hasApplied && rejected.applied_since === true)) {
    return { state: 'rejected', generation: rejected.generation, at: rejected.at, errors: rejected.errors };
  }
  if (hasApplied) return { state: 'applied', generation: applied.generation, at: applied.at, errors: [] };
  if (push !== undefined && push.generation >= wanted) {
    return { state: 'pushed', generation: push.generation, at: push.at, errors: [] };
  }
  return { state: 'none', generation: null, at: null, errors: [] };
}

/** The state of a node in the deployment that gave it this generation. */
export function deploymentState(
  generation: number,
  facts: NodeAgentFacts | undefined,
  push: PushFacts | undefined,
  online: boolean,
): DeploymentNodeState {
  const apply = facts === undefined ? undefined : applyState(generation, facts, push);
  if (apply?.state === 'applied') return { state: 'applied', errors: [] };
  if (apply?.state === 'rejected') return { state: 'rejected', errors: apply.errors };
  if (!online) return { state: 'offline', errors: [] };
  return { state: push !== undefined && push.generation >= generation ? 'pushed' : 'pending', errors: [] };
}

/** The newer of two pushes: by this instance, and as recorded with the node's presence. */
export function newestPush(local: PushFacts | undefined, presence: PushFacts | undefined): PushFacts | undefined {
  if (local === undefined || presence === undefined) return local ?? presence;
  return local.generation >= presence.generation ? local : presence;
}

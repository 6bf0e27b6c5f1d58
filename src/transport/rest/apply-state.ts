/**
 * How far a node is with a generation: the one rule behind a node's `apply` and a deployment's states. Pure.
 * Implements `docs/contract/rest.md#l4-chains` ("applied: …; rejected: …; offline: …").
 */
import type { ApplyState } from '../../delivery/port.js';
import type { NodeAgentFacts } from '../../domain/agents/node-agent-facts.js';

/** A push that has left as a whole: to a session of this instance, or of another as its presence tells. */
export interface PushFacts {
  readonly generation: number;
  /** RFC 3339. */
  readonly at: string | null;
}

type ApplyErrors = ApplyState['errors'];

export interface DeploymentNodeState {
  readonly state: 'pending' | 'pushed' | 'applied' | 'rejected' | 'offline';
  readonly errors: ApplyErrors;
}

/** The node's stand to its newest generation. */
export function applyState(generation: number | null, facts: NodeAgentFacts, push: PushFacts | undefined): ApplyState {
  const wanted = generation ?? Number.POSITIVE_INFINITY;
  const { applied, rejected } = facts;
  if (applied !== null && applied.generation >= wanted) {
    return { state: 'applied', generation: applied.generation, at: applied.at, errors: [] };
  }
  // A reject is forgotten with an apply of its generation or a later one, so none of those can be there.
  if (rejected !== null && rejected.generation >= wanted) {
    return { state: 'rejected', generation: rejected.generation, at: rejected.at, errors: rejected.errors };
  }
  if (push !== undefined && push.generation >= wanted) {
    return { state: 'pushed', generation: push.generation, at: push.at, errors: [] };
  }
  return { state: 'none', generation: null, at: null, errors: [] };
}

/** The node's stand to the generation that a deploy gave it. */
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

/** The newer of what this instance pushed and what the session's presence says was pushed. */
export function newestPush(own: PushFacts | undefined, presence: PushFacts | undefined): PushFacts | undefined {
  if (own === undefined || presence === undefined) return own ?? presence;
  return own.generation >= presence.generation ? own : presence;
}

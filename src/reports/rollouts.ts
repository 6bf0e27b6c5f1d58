/**
 * The progress of a rollout's nodes, from the fleet, the facts of agents and presence. Pure. Implements
 * `docs/contract/rollouts.md#running`.
 */
import { placesIn } from '../domain/rollout/node-set.js';
import { generationWith, hasEnded, nodesIn, type RolloutNode, type RolloutState } from '../domain/rollout/rollout.js';
import { deploymentState } from './apply-state.js';
import { isHeld, type StatusDeps } from './status.js';

export const rolloutNodeStates = ['held', 'pushed', 'applied', 'rejected', 'failed', 'lost', 'offline'] as const;
export type RolloutNodeState = (typeof rolloutNodeStates)[number];

type Deps = Pick<StatusDeps, 'fleet' | 'agentFacts' | 'reports'>;

/** The rollout that holds a node back, or null. */
export function heldBy(deps: Pick<Deps, 'fleet' | 'agentFacts'>, nodeId: string): string | null {
  return isHeld(deps, nodeId) ? (deps.fleet.heldBy(nodeId) ?? null) : null;
}

export interface RolloutNodeProgress {
  /** The first generation in which the node has the change. */
  readonly generation: number;
  readonly state: RolloutNodeState;
}

/** @returns how far a node of the rollout is now */
export function progressOf(
  { fleet, agentFacts, reports }: Deps,
  rollout: RolloutState,
): (node: RolloutNode) => RolloutNodeProgress {
  const [failed, lost] = [new Set(placesIn(rollout.failed)), new Set(placesIn(rollout.lost))];
  return ({ nodeId, place, wave }) => {
    const generation = generationWith(rollout, fleet.node(nodeId));
    const facts = agentFacts.of(nodeId);
    const { state } = deploymentState(generation, facts, undefined, reports.presence(nodeId) !== undefined);
    const now = (one: RolloutNodeState): RolloutNodeProgress => ({ generation, state: one });
    const isHeld = wave > rollout.wave && !hasEnded(rollout) && facts.applied !== null;
    if (isHeld && state !== 'applied') return now('held');
    if (lost.has(place)) return now('lost');
    if (state === 'rejected') return now('rejected');
    if (failed.has(place)) return now('failed');
    return now(state === 'applied' || state === 'offline' ? state : 'pushed');
  };
}

export type WaveCounts = { readonly [S in RolloutNodeState]: number };

const perPiece = 2_500;

/** The nodes of each wave by their states. Yields between two pieces. */
export function* waveCounts(deps: Deps, rollout: RolloutState): Generator<void, readonly WaveCounts[]> {
  const counts = rollout.waves.map(() => new Map<RolloutNodeState, number>());
  const progress = progressOf(deps, rollout);
  let counted = 0;
  for (const node of nodesIn(rollout)) {
    const [ofWave, { state }] = [counts[node.wave - 1], progress(node)];
    ofWave?.set(state, (ofWave.get(state) ?? 0) + 1);
    counted += 1;
    if (counted % perPiece === 0) yield;
  }
  return counts.map(
    (ofWave) => Object.fromEntries(rolloutNodeStates.map((state) => [state, ofWave.get(state) ?? 0])) as WaveCounts,
  );
}

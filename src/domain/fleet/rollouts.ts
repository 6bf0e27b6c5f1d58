/**
 * The fold of rollouts beside their own events: indexes their nodes, removes a deleted node, and forgets old rollouts.
 * Implements `docs/contract/rollouts.md#starting-one` and `docs/decisions/rollouts.md`.
 */
import { limits } from '../../kernel/limits.js';
import { nameIndexKey } from '../resource/meta.js';
import { nodeSet } from '../rollout/node-set.js';
import { hasEnded, nodesIn, rolloutKey, type RolloutState } from '../rollout/rollout.js';
import type { Fleet } from './fleet.js';
import type { AnyState } from './resources.js';

/** Keeps the index of the nodes of rollouts that have not ended. */
export function moveMembers({ members }: Fleet, from: AnyState | undefined, to: AnyState | undefined): void {
  const [before, after] = [from, to].map((state) => unended(state as RolloutState | undefined));
  if (before?.left === after?.left && (before === undefined) === (after === undefined)) return;
  for (const { nodeId } of before === undefined ? [] : nodesIn(before)) members.delete(nodeId);
  for (const { nodeId, wave } of after === undefined ? [] : nodesIn(after)) {
    members.set(nodeId, { rolloutId: after?.id ?? '', wave });
  }
}

const unended = (state: RolloutState | undefined): RolloutState | undefined =>
  state === undefined || hasEnded(state) ? undefined : state;

/** Takes a deleted node out of the rollout that it is in. */
export function leaveRollout({ members, tables }: Fleet, nodeId: string): void {
  const rollout = tables.rollout.get(members.get(nodeId)?.rolloutId ?? '');
  if (rollout === undefined) return;
  members.delete(nodeId);
  const left = nodeSet([rollout.nodes.indexOf(nodeId)], rollout.left);
  tables.rollout.set(rollout.id, { ...rollout, left });
}

/** Drops the oldest ended rollouts, once one has ended and they are too many, or have too many nodes together. */
export function forgetOldRollouts({ tables: { rollout: table }, names }: Fleet, changedId: string): void {
  const changed = table.get(changedId);
  if (changed === undefined || !hasEnded(changed)) return;
  const ended = [...table.values()].filter(hasEnded).sort((a, b) => b.revision - a.revision);
  let nodes = 0;
  for (const [index, one] of ended.entries()) {
    nodes += one.nodes.length;
    const isKept = index < limits.rollouts.endedKept && nodes <= limits.rollouts.endedNodesKept;
    if (isKept || one.id === changedId) continue;
    table.delete(one.id);
    names.delete(nameIndexKey(rolloutKey.type, one.name));
  }
}

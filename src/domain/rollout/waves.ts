/** Units in waves, by a policy. Implements `docs/contract/rollouts.md#rollout-policies`. */
import { nodesOfShare, type WaveRule } from '../rollout-policy/rollout-policy.js';

/** Ids of nodes that change together. */
export type Unit = readonly string[];

/**
 * The units in waves, each unit in exactly one, no wave empty.
 * @param units in the order in which they are taken
 * @param labelsOf of a node, by its id
 */
export function wavesOf(
  rules: readonly WaveRule[],
  units: readonly Unit[],
  labelsOf: (nodeId: string) => { readonly [key: string]: string },
): readonly (readonly Unit[])[] {
  const total = units.reduce((sum, unit) => sum + unit.length, 0);
  const waves: (readonly Unit[])[] = [];
  let rest = units;
  for (const rule of rules) {
    const takes = 'nodes' in rule ? upTo(nodesOfShare(rule.nodes, total)) : bearing(rule.labels, labelsOf);
    const [taken, others]: [Unit[], Unit[]] = [[], []];
    for (const unit of rest) (takes(unit) ? taken : others).push(unit);
    waves.push(taken);
    rest = others;
  }
  return [...waves, rest].filter((wave) => wave.length > 0);
}

/** Takes units until they have `wanted` nodes, or a few more with the last unit. */
function upTo(wanted: number): (unit: Unit) => boolean {
  let nodes = 0;
  return ({ length }) => {
    if (nodes >= wanted) return false;
    nodes += length;
    return true;
  };
}

/** Takes units in which some node has all of the labels. */
function bearing(
  labels: { readonly [key: string]: string },
  labelsOf: (nodeId: string) => { readonly [key: string]: string },
): (unit: Unit) => boolean {
  const wanted = Object.entries(labels);
  return (unit) =>
    unit.some((nodeId) => {
      const own = new Map(Object.entries(labelsOf(nodeId)));
      return wanted.every(([key, value]) => own.get(key) === value);
    });
}

/**
 * The nodes that must change together: touched ones that dial one another by a rule which the command changes. Implements
 * `docs/contract/rollouts.md#starting-one`, "Units".
 */
import { changedRules } from '../compile/plan.js';
import { compileNode } from '../compile/compile-node.js';
import type { Fleet } from '../fleet/fleet.js';
import { ruleKinds, type NodeSnapshot, type RuleOrigin } from '../snapshot/snapshot.js';
import { nodeKey } from '../node/node.js';
import { ownerOf } from '../references/references.js';
import { sortKey } from '../resource/meta.js';
import { compareText } from '../../kernel/compare-text.js';
import { groupBy } from '../../kernel/maps.js';
import type { Unit } from '../rollout/waves.js';

/** Rules compared in one piece. */
const rulesPerPiece = 1_000;

/** Two nodes, by their ids: the first dials the second by a rule that differs. */
export type DialledPair = readonly [dialler: string, dialled: string];

/**
 * The pairs among the touched nodes. Yields between two pieces.
 * @param before the fleet before the command @param after a draft after it
 */
export function* dialledPairs(
  before: Fleet,
  after: Fleet,
  touched: ReadonlySet<string>,
): Generator<void, readonly DialledPair[]> {
  const pairs: DialledPair[] = [];
  let rules = 0;
  for (const nodeId of touched) {
    const [old, next] = [compileNode(before, nodeId), compileNode(after, nodeId)];
    rules += 1 + sizeOf(old) + sizeOf(next);
    if (rules >= rulesPerPiece) {
      rules = 0;
      yield;
    }
    const differing = changedRules(old, next);
    for (const [fleet, changed] of [[before, differing.before] as const, [after, differing.after] as const]) {
      for (const rule of changed) {
        const other = dialledBy(fleet, rule);
        if (other !== undefined && touched.has(other)) pairs.push([nodeId, other]);
      }
    }
  }
  return pairs;
}

const sizeOf = (one: NodeSnapshot): number => ruleKinds.reduce((sum, kind) => sum + one[kind].length, 0);

function dialledBy(
  fleet: Fleet,
  { rule_id, origin }: { readonly rule_id: string; readonly origin: RuleOrigin },
): string | undefined {
  const resource = fleet.resolve(ownerOf(origin.resource_type, origin.resource_id));
  return resource?.declaration.compiled?.dialledBy(resource.state, rule_id);
}

/**
 * The touched nodes, each in one unit. The nodes of a unit, and the units by their first nodes, are in the natural
 * order of the names that nodes have in the fleet. Yields between two pieces.
 */
export function* unitsOf(
  fleet: Fleet,
  touched: ReadonlySet<string>,
  pairs: readonly DialledPair[],
): Generator<void, readonly Unit[]> {
  const key = new Map([...touched].map((id) => [id, sortKey(fleet.get(nodeKey, id)?.name ?? id)]));
  yield;
  const ids = [...touched].sort((a, b) => compareText(key.get(a) ?? a, key.get(b) ?? b) || compareText(a, b));
  yield;
  const parents = new Map<string, string>();
  const rootOf = (id: string): string => {
    let root = id;
    for (let up = parents.get(root); up !== undefined; up = parents.get(root)) root = up;
    // Shortens the next search.
    for (let at = id; at !== root;) {
      const up = parents.get(at) ?? root;
      parents.set(at, root);
      at = up;
    }
    return root;
  };
  for (const [a, b] of pairs) {
    const [one, other] = [rootOf(a), rootOf(b)];
    if (one !== other) parents.set(one, other);
  }
  return [...groupBy(ids, rootOf).values()];
}

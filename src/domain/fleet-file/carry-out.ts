/**
 * Tries the changes of a document on a draft of the fleet: the steps, what is in the way, and the nodes whose rules change. A
 * plan and an apply call the same function. Implements `docs/contract/automation.md#the-fleet-as-a-file`, plan and "Atomic".
 */
import { compileNode } from '../compile/compile-node.js';
import { snapshotDifference } from '../compile/plan.js';
import { oversizedInPieces } from '../compile/size.js';
import type { Fleet } from '../fleet/fleet.js';
import { eventDeclaration, type FleetEvent } from '../fleet/resources.js';
import { forEach } from '../../kernel/pieces.js';
import { ok } from '../../kernel/result.js';
import type { AuditChange } from '../resource/audit-change.js';
import type { Change } from './compare.js';
import type { DocumentMistake } from './document.js';
import { dryRun, type DryRun } from './dry-run.js';

export interface Step {
  readonly change: Change;
  readonly events: readonly FleetEvent[];
  /** As the audit shows them. */
  readonly fields: readonly AuditChange[];
  /** Cannot be reverted, like a new key. */
  readonly final: boolean;
}

export interface CarriedOut extends Pick<DryRun<Change>, 'after' | 'touched'> {
  readonly steps: readonly Step[];
  readonly mistakes: readonly DocumentMistake[];
  readonly obstacles: readonly string[];
}

/** The ids of the rules that a node gets, has changed and loses. */
export interface ChangedNode extends ReturnType<typeof snapshotDifference> {
  readonly node_id: string;
  readonly node_name: string;
}

/** Steps described, and nodes compiled, at a time. */
const perPiece = { steps: 100, nodes: 10 };

/** Yields between two pieces. */
export function* carryOut(fleet: Fleet, changes: readonly Change[]): Generator<void, CarriedOut> {
  const { accepted, refused, after, touched } = yield* dryRun(fleet, changes, ({ command }) => ok(command));
  const oversized = yield* oversizedInPieces(after, touched);
  const steps: Step[] = [];
  yield* forEach(accepted, perPiece.steps, ({ attempt: change, events }) => {
    const audits = events.map((event) => eventDeclaration(event).audit(event));
    // The first event decides, as for any entry: a new node with a PSK can still be reverted.
    const final = (audits[0]?.notRevertibleBecause ?? null) !== null;
    steps.push({ change, events, fields: audits.flatMap((audit) => audit.changes), final });
  });
  const mistakes: DocumentMistake[] = [];
  const conflicts: DryRun<Change>['refused'][number][] = [];
  for (const one of refused) {
    const { at } = one.attempt;
    const { code, message } = one.refusal;
    if (code === 'invalid_request' && at !== undefined) mistakes.push({ at, message });
    else conflicts.push(one);
  }
  const obstacles = [...obstaclesOf(conflicts), ...(oversized === undefined ? [] : [oversized.message])];
  return { steps, mistakes, obstacles, after, touched };
}

/** Refusals as sentences that name the resource. */
export function obstaclesOf(refused: DryRun<Pick<Change, 'action' | 'resource'>>['refused']): readonly string[] {
  return refused.map(
    ({ attempt: { resource }, refusal: { message } }) => `the ${resource.type} "${resource.name}": ${message}`,
  );
}

/** The nodes whose rules change. Yields between two pieces. */
export function* changedNodes(fleet: Fleet, { after, touched }: CarriedOut): Generator<void, readonly ChangedNode[]> {
  const nodes: ChangedNode[] = [];
  yield* forEach(touched, perPiece.nodes, (id) => {
    if (!after.has('node', id)) return;
    const difference = snapshotDifference(compileNode(fleet, id), compileNode(after, id));
    if (difference.added.length + difference.changed.length + difference.removed.length === 0) return;
    nodes.push({ node_id: id, node_name: after.nameOf('node', id) ?? id, ...difference });
  });
  return nodes;
}

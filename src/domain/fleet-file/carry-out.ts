/**
 * Carries out what a document asks for, on a draft of the fleet, and says what comes of it: steps, what is in the way, and the
 * rules of nodes that change. The same function serves plan and apply.
 * Implements `docs/contract/automation.md#the-fleet-as-a-file`, plan and "Atomic".
 */
import { compileNode } from '../compile/compile-node.js';
import { snapshotDifference } from '../compile/plan.js';
import { oversizedInPieces } from '../compile/size.js';
import type { Fleet } from '../fleet/fleet.js';
import type { FleetEvent } from '../fleet/resources.js';
import { eventDeclaration } from '../fleet/resources.js';
import { forEach } from '../../kernel/pieces.js';
import { ok } from '../../kernel/result.js';
import type { AuditChange } from '../resource/audit-change.js';
import type { Wish } from './compare.js';
import type { DocumentMistake } from './document.js';
import type { TriedTogether } from './together.js';
import { triedTogether } from './together.js';

export interface Step {
  readonly wish: Wish;
  readonly events: readonly FleetEvent[];
  readonly changes: readonly AuditChange[];
  /** It cannot be taken back, as a new key cannot. */
  readonly final: boolean;
}

export interface CarriedOut {
  readonly steps: readonly Step[];
  readonly mistakes: readonly DocumentMistake[];
  readonly obstacles: readonly string[];
  /** The fleet behind the steps. */
  readonly after: Fleet;
  readonly touched: ReadonlySet<string>;
}

/** The rules that a node gets, has changed and loses. */
export interface ChangedNode {
  readonly node_id: string;
  readonly node_name: string;
  readonly added: readonly string[];
  readonly changed: readonly string[];
  readonly removed: readonly string[];
}

/** Yields between two pieces. */
export function* carryOut(fleet: Fleet, wishes: readonly Wish[]): Generator<void, CarriedOut> {
  const { held, refused, after, touched } = yield* triedTogether(fleet, wishes, ({ command }) => ok(command));
  const oversized = yield* oversizedInPieces(after, touched);
  const steps: Step[] = [];
  yield* forEach(held, stepsPerPiece, ({ attempt: wish, events }) => {
    const audits = events.map((event) => eventDeclaration(event).audit(event));
    // As for any entry, the first event says it: a node that gets a PSK can still be taken back.
    const final = (audits[0]?.notRevertibleBecause ?? null) !== null;
    steps.push({ wish, events, changes: audits.flatMap(({ changes }) => changes), final });
  });
  return {
    steps,
    mistakes: refused.flatMap(({ attempt: { at }, refusal: { code, message } }) =>
      code === 'invalid_request' && at !== undefined ? [{ at, message }] : [],
    ),
    obstacles: [
      ...obstaclesOf(
        refused.filter(({ attempt: { at }, refusal: { code } }) => code !== 'invalid_request' || at === undefined),
      ),
      ...(oversized === undefined ? [] : [oversized.message]),
    ],
    after,
    touched,
  };
}

/** So many steps are described, or nodes compiled, at a time. */
const stepsPerPiece = 100;
const compiledPerPiece = 10;

/** Refusals as sentences that name the resource. */
export function obstaclesOf(refused: TriedTogether<Pick<Wish, 'action' | 'resource'>>['refused']): readonly string[] {
  return refused.map(
    ({ attempt: { resource }, refusal: { message } }) => `the ${resource.type} "${resource.name}": ${message}`,
  );
}

/** The nodes whose rules change. Yields between two pieces. */
export function* changedNodes(fleet: Fleet, { after, touched }: CarriedOut): Generator<void, readonly ChangedNode[]> {
  const nodes: ChangedNode[] = [];
  for (const [index, id] of [...touched].entries()) {
    if (index > 0 && index % compiledPerPiece === 0) yield;
    if (!after.has('node', id)) continue;
    const difference = snapshotDifference(compileNode(fleet, id), compileNode(after, id));
    if (difference.added.length + difference.changed.length + difference.removed.length === 0) continue;
    nodes.push({ node_id: id, node_name: after.nameOf('node', id) ?? id, ...difference });
  }
  return nodes;
}

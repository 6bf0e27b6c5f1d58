/**
 * The decision to carry out a document, or a part of it: what has been compared must not have changed since, and nothing
 * may be in the way. Its events are one command. Implements `docs/contract/automation.md#the-fleet-as-a-file`, "Atomic".
 */
import type { Fleet } from '../fleet/fleet.js';
import { draftFleet } from '../fleet/fleet.js';
import { applyCommand } from '../fleet/apply.js';
import { hypothetical } from '../fleet/hypothetical.js';
import type { FleetEvent } from '../fleet/resources.js';
import type { FleetApplied } from '../fleet-set/declaration.js';
import { forEach } from '../../kernel/pieces.js';
import { ok } from '../../kernel/result.js';
import type { Decision } from '../resource/refusal.js';
import { refuse } from '../resource/refusal.js';
import type { ResourceMeta } from '../resource/meta.js';
import { presentBase } from './base.js';
import { carryOut } from './carry-out.js';
import type { Comparison, Wish } from './compare.js';

export interface ApplyDocument {
  readonly type: 'ApplyDocument';
  /** `former` and `left` are found by the first command of an apply, and given to those behind it. */
  readonly applied: FleetApplied['data'];
  readonly wishes: readonly Wish[];
  readonly versions: Comparison['versions'];
}

/** What a refusal says when something has changed since the comparison. */
export const changedMeanwhile = 'the fleet has changed meanwhile; plan again';

/** The fleet behind the first event of an apply: numbers that are assigned follow from the revision of their event. */
export function begun(fleet: Fleet, first: FleetApplied): Fleet {
  const { state: draft } = draftFleet(fleet);
  applyCommand(draft, hypothetical(draft, [first]));
  return draft;
}

function withFormer(fleet: Fleet, applied: FleetApplied['data']): FleetApplied['data'] {
  if (applied.former !== undefined) return applied;
  const { base: former, left } = presentBase(fleet, applied.name);
  return { ...applied, former, ...(left === undefined ? {} : { left }) };
}

/** So many versions are compared at a time. */
const perPiece = 2_500;

/** Yields between two pieces. */
export function* decideApply(
  fleet: Fleet,
  { applied, wishes, versions }: ApplyDocument,
): Generator<void, Decision<FleetEvent>> {
  let isChanged = false;
  yield* forEach(versions, perPiece, ([type, id, version]) => {
    isChanged ||= fleet.get<ResourceMeta>({ type }, id)?.version !== version;
  });
  if (isChanged) return refuse('precondition_failed', changedMeanwhile);
  const first: FleetApplied = { type: 'FleetApplied', data: withFormer(fleet, applied) };
  const { steps, mistakes, obstacles } = yield* carryOut(begun(fleet, first), wishes);
  if (mistakes.length + obstacles.length > 0) {
    return refuse('conflict', [...obstacles, ...mistakes.map(({ message }) => message)].slice(0, 50).join('; '));
  }
  return ok([first, ...steps.flatMap(({ events }) => events)]);
}

/**
 * Reverts an entry, also one about several resources, such as an apply: the inverse of each event, newest first, by the rules of
 * every revert (`domain/revert`), judged by the result. Ownership and the base of drift are restored too.
 * Implements `docs/contract/automation.md#the-fleet-as-a-file`, revert.
 */
import { isAboutSeveral } from '../audit/describe.js';
import { oversizedInPieces } from '../compile/size.js';
import { applyInPieces } from '../fleet/apply.js';
import { draftFleet, type Fleet } from '../fleet/fleet.js';
import { draftAfter, hypothetical } from '../fleet/hypothetical.js';
import { resourceOf, type FleetEvent } from '../fleet/resources.js';
import { fleetSetType } from '../fleet-set/declaration.js';
import type { RecordedCommand, RecordedEvent } from '../../kernel/event.js';
import { err, ok, type Result } from '../../kernel/result.js';
import { refuse, type Decision, type Refusal } from '../resource/refusal.js';
import type { Undo } from '../resource/undo.js';
import {
  changedMeanwhile,
  decideRevert,
  endsWithEntry,
  entryRefusal,
  historiesHold,
  historyIn,
  undoCommand,
  type Revert,
} from '../revert/decide.js';
import { undoOf } from '../revert/history.js';
import { baseRestored } from './base.js';
import { obstaclesOf } from './carry-out.js';
import { dryRun, type Attempt } from './dry-run.js';

type Reverting = Omit<Revert, 'type'>;

/** Decides the revert of any entry. Yields between two pieces. */
export function* decideRevertOf(fleet: Fleet, revert: Reverting): Generator<void, Decision<FleetEvent>> {
  if (!isAboutSeveral(revert.entry.events[0])) return decideRevert(fleet, revert);
  return historiesHold(fleet, revert) ? yield* undone(fleet, revert) : refuse('conflict', changedMeanwhile);
}

/** The commands that would revert entries, newest first, except what changes nothing. Yields between two pieces. */
export function* previewReverts(
  fleet: Fleet,
  reverts: readonly Reverting[],
): Generator<void, Result<readonly RecordedCommand[], Refusal>> {
  const { state: draft } = draftFleet(fleet);
  const commands: RecordedCommand[] = [];
  for (const revert of reverts) {
    const isSeveral = isAboutSeveral(revert.entry.events[0]);
    const decision = isSeveral ? yield* undone(draft, revert) : decideRevert(draft, revert);
    if (!decision.ok) return decision;
    if (decision.value.length === 0) continue;
    yield;
    const command = hypothetical(draft, decision.value, revert.entry.events[0].metadata.command.id);
    const refusal = yield* oversizedInPieces(draft, yield* applyInPieces(draft, command));
    if (refusal !== undefined) return err(refusal);
    commands.push(command);
  }
  return ok(commands);
}

interface UndoneEvent extends Attempt {
  readonly recorded: RecordedEvent;
  readonly undo: Undo;
}

/** The action that a plan shows for an undo. */
const actions = { delete: 'delete', restore: 'create', change: 'update' } as const;

/** The revert of an entry about several resources. */
function* undone(fleet: Fleet, { entry, histories, ofRollout }: Reverting): Generator<void, Decision<FleetEvent>> {
  const refusal = entryRefusal(fleet, entry);
  if (refusal !== undefined) return err(refusal);
  const [first] = entry.events;
  const moved = resourceOf(first).type === fleetSetType ? [baseRestored(fleet, first)] : [];
  const draft = moved.length === 0 ? fleet : draftAfter(fleet, moved);
  const attempts = entry.events.toReversed().flatMap((recorded): readonly UndoneEvent[] => {
    const undo = undoOf(recorded);
    if (undo === undefined) return [];
    const { type, id } = resourceOf(recorded);
    const action = recorded.type === 'ChainDeployed' ? 'deploy' : actions[undo.kind];
    return [{ action, resource: { type, id, name: fleet.nameOf(type, id) ?? id }, recorded, undo }];
  });
  const { accepted, refused } = yield* dryRun(draft, attempts, ({ recorded, undo }, on) =>
    undoCommand(on, recorded, undo, historyIn(histories, recorded)),
  );
  if (refused.length > 0) return refuse('conflict', obstaclesOf(refused).slice(0, 50).join('; '));
  const ends = endsWithEntry(fleet, entry, ofRollout);
  if (!ends.ok) return ends;
  return ok([...moved, ...accepted.flatMap(({ events }) => events), ...ends.value]);
}

/**
 * Reverts an entry about several resources, such as an apply: the inverse of each event, newest first, by the rules of every
 * revert (`domain/revert`), judged by the result. Ownership and the base of drift are restored too.
 * Implements `docs/contract/automation.md#the-fleet-as-a-file`, revert.
 */
import { oversizedInPieces } from '../compile/size.js';
import { applyInPieces } from '../fleet/apply.js';
import { draftFleet, type Fleet } from '../fleet/fleet.js';
import { draftAfter, hypothetical } from '../fleet/hypothetical.js';
import { resourceOf, type FleetEvent } from '../fleet/resources.js';
import { fleetSetType } from '../fleet-set/declaration.js';
import { ownerOf, type Owner } from '../references/references.js';
import type { RecordedCommand, RecordedEvent } from '../../kernel/event.js';
import { groupBy } from '../../kernel/maps.js';
import { err, ok, type Result } from '../../kernel/result.js';
import { refuse, type Decision, type Refusal } from '../resource/refusal.js';
import type { Undo } from '../resource/undo.js';
import { changedMeanwhile, endsWithEntry, entryRefusal, undoCommand, versionOfSubject } from '../revert/decide.js';
import { confirmationKey } from '../confirmation/confirmation.js';
import { rolloutKey } from '../rollout/rollout.js';
import { undoOf, type History } from '../revert/history.js';
import { baseRestored } from './base.js';
import { obstaclesOf } from './carry-out.js';
import { dryRun, type Attempt } from './dry-run.js';

export interface RevertSeveral {
  readonly type: 'RevertSeveral';
  readonly entry: RecordedCommand;
  /** The history of each of its resources. */
  readonly histories: ReadonlyMap<Owner, History>;
  /** See `Revert`. */
  readonly ofRollout?: true;
}

/** The resources of an entry, each with the entry's events about it. */
export function subjectsOf(entry: RecordedCommand): ReadonlyMap<Owner, RecordedCommand> {
  const none: readonly string[] = [fleetSetType, rolloutKey.type, confirmationKey.type];
  const subjects = groupBy(entry.events, (event) => {
    const { type, id } = resourceOf(event);
    return none.includes(type) ? undefined : ownerOf(type, id);
  });
  return new Map([...subjects].map(([owner, events]) => [owner, { stream: entry.stream, events }]));
}

/** Whether no resource has changed since its history was read. */
export function historiesHold(fleet: Fleet, { entry, histories }: Reverting): boolean {
  return [...subjectsOf(entry)].every(
    ([owner, about]) => versionOfSubject(fleet, about) === histories.get(owner)?.version,
  );
}

/** Yields between two pieces. */
export function* decideRevertSeveral(fleet: Fleet, revert: RevertSeveral): Generator<void, Decision<FleetEvent>> {
  return historiesHold(fleet, revert) ? yield* undone(fleet, revert) : refuse('conflict', changedMeanwhile);
}

type Reverting = Omit<RevertSeveral, 'type'>;

/** The commands that would revert several entries, newest first. Yields between two pieces. */
export function* previewReverts(
  fleet: Fleet,
  reverts: readonly Reverting[],
): Generator<void, Result<readonly RecordedCommand[], Refusal>> {
  const { state: draft } = draftFleet(fleet);
  const commands: RecordedCommand[] = [];
  for (const revert of reverts) {
    const decision = yield* undone(draft, revert);
    if (!decision.ok) return decision;
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
  const { accepted, refused } = yield* dryRun(draft, attempts, ({ recorded, undo, resource: { type, id } }, on) => {
    const history = histories.get(ownerOf(type, id));
    if (history === undefined) throw new Error(`the revert of an entry needs the history of the ${type} ${id}`);
    return undoCommand(on, recorded, undo, history);
  });
  if (refused.length > 0) return refuse('conflict', obstaclesOf(refused).slice(0, 50).join('; '));
  const ends = endsWithEntry(fleet, entry, ofRollout);
  if (!ends.ok) return ends;
  return ok([...moved, ...accepted.flatMap(({ events }) => events), ...ends.value]);
}

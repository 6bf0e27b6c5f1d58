/**
 * The revert of an entry about many resources, as an apply is: the inverse of each of its events, newest first, by the rules
 * of every revert (`domain/revert`), checked as a result. Ownership goes back with the resources, and the base of drift with
 * the apply that is the base. Implements `docs/contract/automation.md#the-fleet-as-a-file`, revert.
 */
import { oversizedInPieces } from '../compile/size.js';
import { applyCommand, applyInPieces } from '../fleet/apply.js';
import type { Fleet } from '../fleet/fleet.js';
import { draftFleet } from '../fleet/fleet.js';
import { hypothetical } from '../fleet/hypothetical.js';
import type { FleetEvent } from '../fleet/resources.js';
import { resourceOf } from '../fleet/resources.js';
import { fleetSetType } from '../fleet-set/declaration.js';
import type { Owner } from '../references/references.js';
import { ownerOf } from '../references/references.js';
import type { RecordedCommand, RecordedEvent } from '../../kernel/event.js';
import type { Result } from '../../kernel/result.js';
import { err, ok } from '../../kernel/result.js';
import type { Decision, Refusal } from '../resource/refusal.js';
import { refuse } from '../resource/refusal.js';
import type { Undo } from '../resource/undo.js';
import { changedMeanwhile, entryRefusal, undoCommand, versionOfSubject } from '../revert/decide.js';
import type { History } from '../revert/history.js';
import { undoOf } from '../revert/history.js';
import { baseBack } from './base.js';
import { obstaclesOf } from './carry-out.js';
import type { Attempt } from './together.js';
import { triedTogether } from './together.js';

export interface RevertSeveral {
  readonly type: 'RevertSeveral';
  readonly entry: RecordedCommand;
  /** Of each of its resources. */
  readonly histories: ReadonlyMap<Owner, History>;
}

/** Whether an entry is about many resources, and reverted as such. */
export const isAboutSeveral = ({ events: [first] }: RecordedCommand): boolean =>
  resourceOf(first).type === fleetSetType;

/** What an entry is about, each resource with the events about it. */
export function subjectsOf(entry: RecordedCommand): ReadonlyMap<Owner, RecordedCommand> {
  const subjects = new Map<Owner, [RecordedEvent, ...RecordedEvent[]]>();
  for (const event of entry.events) {
    const { type, id } = resourceOf(event);
    if (type === fleetSetType) continue;
    const owner = ownerOf(type, id);
    const events = subjects.get(owner);
    if (events === undefined) subjects.set(owner, [event]);
    else events.push(event);
  }
  return new Map([...subjects].map(([owner, events]) => [owner, { stream: entry.stream, events }]));
}

/** Yields between two pieces. */
export function* decideRevertSeveral(fleet: Fleet, revert: RevertSeveral): Generator<void, Decision<FleetEvent>> {
  for (const [owner, about] of subjectsOf(revert.entry)) {
    if (versionOfSubject(fleet, about) !== revert.histories.get(owner)?.version) {
      return refuse('conflict', changedMeanwhile);
    }
  }
  return yield* undone(fleet, revert);
}

type Reverting = Pick<RevertSeveral, 'entry' | 'histories'>;

/** Several entries, newest first, as the commands that would revert them. Yields between two pieces. */
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

/** As a plan would call it. */
const actions = { delete: 'delete', restore: 'create', change: 'update' } as const;

function* undone(fleet: Fleet, { entry, histories }: Reverting): Generator<void, Decision<FleetEvent>> {
  const refusal = entryRefusal(fleet, entry);
  if (refusal !== undefined) return err(refusal);
  const moved = baseBack(fleet, entry.events[0]);
  const { state: draft } = draftFleet(fleet);
  applyCommand(draft, hypothetical(draft, [moved]));
  const attempts = entry.events.toReversed().flatMap((recorded): readonly UndoneEvent[] => {
    const undo = undoOf(recorded);
    if (undo === undefined) return [];
    const { type, id } = resourceOf(recorded);
    const action = recorded.type === 'ChainDeployed' ? 'deploy' : actions[undo.kind];
    return [{ action, resource: { type, id, name: fleet.nameOf(type, id) ?? id }, recorded, undo }];
  });
  const { held, refused } = yield* triedTogether(draft, attempts, ({ recorded, undo, resource: { type, id } }, on) => {
    const history = histories.get(ownerOf(type, id));
    if (history === undefined) throw new Error(`the revert of an entry needs the history of the ${type} ${id}`);
    return undoCommand(on, recorded, undo, history);
  });
  if (refused.length > 0) return refuse('conflict', obstaclesOf(refused).slice(0, 50).join('; '));
  return ok([moved, ...held.flatMap(({ events }) => events)]);
}

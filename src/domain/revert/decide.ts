/**
 * Decides and previews the revert of a fleet entry: the inverse of each event, newest first, through the ordinary decisions,
 * unless that would overwrite later work. `accounts/revert.ts` reverts entries of accounts.
 * Implements `docs/contract/domain.md#audit-and-revert`.
 */
import { unreachable } from '../../kernel/errors.js';
import type { RecordedCommand, RecordedEvent } from '../../kernel/event.js';
import { jsonEqual, type Json } from '../../kernel/json.js';
import { groupBy } from '../../kernel/maps.js';
import { err, ok, type Result } from '../../kernel/result.js';
import { alreadyReverted, notRevertible, activeRevert } from '../aggregate/reverts.js';
import { describeCommand, auditOfFleetEvent, fleetSubject, isAboutSeveral } from '../audit/describe.js';
import { applyCommand } from '../fleet/apply.js';
import { decideFleet } from '../fleet/decide.js';
import { resourceOf, type FleetCommand, type FleetEvent } from '../fleet/resources.js';
import { draftFleet, type Fleet } from '../fleet/fleet.js';
import { hypothetical } from '../fleet/hypothetical.js';
import { fleetSetType } from '../fleet-set/declaration.js';
import { ownerOf, type Owner } from '../references/references.js';
import type { AnyCommand } from '../resource/lifecycle.js';
import type { ResourceMeta } from '../resource/meta.js';
import { refuse, type Decision, type Refusal } from '../resource/refusal.js';
import type { Undo } from '../resource/undo.js';
import { confirmationKey } from '../confirmation/confirmation.js';
import { endsWithRevert } from '../confirmation/decide.js';
import { endByRevert } from '../rollout/decide.js';
import { rolloutKey } from '../rollout/rollout.js';
import { laterWork, undoOf, entries, fieldConflicts, gone, type History, type FieldConflict } from './history.js';
import type { AuditChange } from '../resource/audit-change.js';

export interface Revert {
  readonly type: 'Revert';
  /** The command of the entry, in its current shape. */
  readonly entry: RecordedCommand;
  /** The history of each of its subjects. */
  readonly histories: ReadonlyMap<Owner, History>;
  /** Set when somebody reverts the entry's rollout itself, which then ends as `reverted`. */
  readonly ofRollout?: true;
}

/** The resource that an entry is about, or each one of an entry about several, with the entry's events about it. */
export function subjectsOf(entry: RecordedCommand): ReadonlyMap<Owner, RecordedCommand> {
  const [first] = entry.events;
  if (!isAboutSeveral(first)) return new Map([[ownerOfEvent(first), entry]]);
  const none: readonly string[] = [fleetSetType, rolloutKey.type, confirmationKey.type];
  const subjects = groupBy(entry.events, (event) =>
    none.includes(resourceOf(event).type) ? undefined : ownerOfEvent(event),
  );
  return new Map([...subjects].map(([owner, events]) => [owner, { stream: entry.stream, events }]));
}

function ownerOfEvent(event: RecordedEvent): Owner {
  const { type, id } = resourceOf(event);
  return ownerOf(type, id);
}

/** Whether no subject has changed since its history was read. */
export function historiesHold(fleet: Fleet, { entry, histories }: Pick<Revert, 'entry' | 'histories'>): boolean {
  return [...subjectsOf(entry)].every(
    ([owner, about]) => versionOfSubject(fleet, about) === histories.get(owner)?.version,
  );
}

/** The history of the resource that an event is about. */
export function historyIn(histories: Revert['histories'], event: RecordedEvent): History {
  const owner = ownerOfEvent(event);
  const history = histories.get(owner);
  if (history === undefined) throw new Error(`the revert of an entry needs the history of ${owner}`);
  return history;
}

/** The version of the resource that an entry is about; undefined when it does not exist. */
export function versionOfSubject(fleet: Fleet, { events: [first] }: RecordedCommand): number | undefined {
  const { type, id } = resourceOf(first);
  if (type === 'connectivity') return fleet.singletons.connectivity.value.version;
  return fleet.get<ResourceMeta>({ type }, id)?.version;
}

export const changedMeanwhile = 'the resource was changed while its history was read; try again';

/** Decides the revert of an entry about one resource. `fleet-file/revert.ts` decides about several. */
export function decideRevert(fleet: Fleet, revert: Omit<Revert, 'type'>): Decision<FleetEvent> {
  const { entry, histories, ofRollout } = revert;
  const refusal = entryRefusal(fleet, entry);
  if (refusal !== undefined) return err(refusal);
  if (!historiesHold(fleet, revert)) return refuse('conflict', changedMeanwhile);
  const history = historyIn(histories, entry.events[0]);
  const { state: draft } = draftFleet(fleet);
  const events: FleetEvent[] = [];
  let last: readonly FleetEvent[] = [];
  for (const recorded of entry.events.toReversed()) {
    const undo = undoOf(recorded);
    if (undo === undefined) continue;
    // Decided after the inverse of the later event.
    if (last.length > 0) applyCommand(draft, hypothetical(draft, last));
    const decision = decideUndo(draft, recorded, undo, history);
    if (!decision.ok) return decision;
    last = decision.value;
    events.push(...last);
  }
  const ends = endsWithEntry(fleet, entry, ofRollout);
  return ends.ok ? ok([...events, ...ends.value]) : ends;
}

/** The ends of an entry's rollout and confirmation, which go with the entry's revert. */
export function endsWithEntry(
  fleet: Fleet,
  { events }: RecordedCommand,
  ofRollout: true | undefined,
): Decision<FleetEvent> {
  const ends = events.flatMap((event) =>
    event.type === 'RolloutStarted' ? endByRevert(fleet, resourceOf(event).id, ofRollout === true) : [],
  );
  if (ofRollout === true && ends.length === 0) return refuse('conflict', 'the rollout has ended');
  return ok([...ends, ...endsWithRevert(fleet, events[0].metadata.command.id)]);
}

/** Why an entry cannot be reverted, whatever its resource is like now. */
export function entryRefusal(fleet: Fleet, entry: RecordedCommand): Refusal | undefined {
  const because = describeCommand(entry)?.notRevertibleBecause;
  if (because !== null) return notRevertible(because ?? 'it is none of the audit');
  return alreadyReverted(fleet.reverts, entry.events[0].metadata.command.id);
}

function decideUndo(fleet: Fleet, recorded: RecordedEvent, undo: Undo, history: History): Decision<FleetEvent> {
  const command = undoCommand(fleet, recorded, undo, history);
  return command.ok ? asConflict(decideFleet(fleet, command.value)) : command;
}

/** The command that undoes an event, or why it would overwrite later work. */
export function undoCommand(
  fleet: Fleet,
  recorded: RecordedEvent,
  undo: Undo,
  history: History,
): Result<FleetCommand, Refusal> {
  const subject = resourceOf(recorded);
  const given = (command: AnyCommand): Result<FleetCommand, Refusal> => ok(command as FleetCommand);
  switch (undo.kind) {
    case 'change': {
      const conflicts = conflictsOf(fleet, undo);
      if (conflicts === undefined) return refuse('conflict', gone(subject, history));
      if (conflicts.length > 0) return refuse('conflict', fieldConflicts(conflicts, history));
      return given(undo.command(fleet));
    }
    case 'delete': {
      if (!fleet.has(subject.type, subject.id)) return refuse('conflict', gone(subject, history));
      const work = laterWork(history, (id) => activeRevert(fleet.reverts, id) !== undefined);
      if (work.length === 0) return given(undo.command);
      const name = fleet.nameOf(subject.type, subject.id) ?? subject.id;
      return refuse(
        'conflict',
        `there is later work on the ${subject.type} "${name}": ${entries(work)}; revert it first`,
      );
    }
    case 'restore': {
      if (fleet.has(subject.type, subject.id)) {
        const by = entries(history.later.slice(0, 1));
        return refuse('conflict', `the ${subject.type} ${subject.id} exists again: ${by}`);
      }
      if (history.former === undefined) throw new Error('the revert of a delete needs what was before it');
      return given(undo.command(history.former));
    }
    default:
      return unreachable(undo);
  }
}

/** The fields that no longer have the event's value; undefined when the resource is gone. */
function conflictsOf(fleet: Fleet, undo: Undo): readonly FieldConflict[] | undefined {
  if (undo.kind !== 'change') return [];
  const now = undo.now(fleet);
  if (now === undefined) return undefined;
  const { changes, shown = (_field: string, value: Json): Json => value } = undo;
  const changed = Object.entries(changes).filter(([field, { to }]) => !jsonEqual(now(field), to));
  return changed.map(([field, { from }]) => ({ field, now: shown(field, now(field)), wanted: shown(field, from) }));
}

/** The fields of an entry that have changed since. A refusal names the entries that changed them. */
export function fieldsInTheWay(fleet: Fleet, entry: RecordedCommand): readonly string[] {
  const conflicts = entry.events.map(undoOf).flatMap((undo) => (undo && conflictsOf(fleet, undo)) ?? []);
  return [...new Set(conflicts.map(({ field }) => field))];
}

/** A refusal of the inverse is a conflict, because the request itself is valid. */
function asConflict(decision: Decision<FleetEvent>): Decision<FleetEvent> {
  if (decision.ok || decision.error.code === 'payload_too_large') return decision;
  return refuse('conflict', decision.error.message);
}

export interface PreviewedChange extends AuditChange {
  readonly resource: { readonly type: string; readonly id: string | null; readonly name: string | null };
}

/** @param revert the command that would revert an entry */
export function previewOf(fleet: Fleet, revert: RecordedCommand): readonly PreviewedChange[] {
  return revert.events.flatMap((event) => {
    const { type, id, name } = fleetSubject(event);
    const resource = { type, id, name: name ?? (id === null ? null : (fleet.nameOf(type, id) ?? null)) };
    return auditOfFleetEvent(event).changes.map((change) => ({ resource, ...change }));
  });
}

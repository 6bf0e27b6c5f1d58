/**
 * The history of an entry's resource, which a revert needs because the fold holds values but not who set them. It is made
 * from the audit, and valid until the resource changes again. Implements `docs/contract/domain.md#audit-and-revert`.
 */
import type { Actor, RecordedCommand, RecordedEvent } from '../../kernel/event.js';
import { fleetEvent, eventDeclaration, resourceOf } from '../fleet/resources.js';
import { policyId } from '../listener-policy/policy.js';
import type { Former } from '../resource/lifecycle.js';
import type { Undo } from '../resource/undo.js';
import type { Json } from '../../kernel/json.js';

/** An entry about the resource. */
export interface EntryAbout {
  readonly id: string;
  /** `<resource type>.<verb>`. */
  readonly action: string;
  readonly actor: Actor['type'];
  /** RFC 3339. */
  readonly at: string;
  /** The log position of its last event. */
  readonly position: number;
  /** The number of its events. */
  readonly events: number;
  /** It is about other resources too. */
  readonly isAboutSeveral: boolean;
}

export interface History {
  /** The resource's version when the entries were read; undefined when it did not exist. */
  readonly version: number | undefined;
  /** Later entries about the resource, newest first. */
  readonly later: readonly EntryAbout[];
  /** The id of the entry that set the present value of each field that has changed since. */
  readonly changedBy: ReadonlyMap<string, string>;
  /** The entry that deleted the resource, if it is gone. */
  readonly deletedBy?: EntryAbout | undefined;
  /** Where a restored resource continues. Only for the revert of a delete. */
  readonly former?: Former;
}

/** How to undo an event; undefined when it leaves nothing to undo. */
export function undoOf(recorded: RecordedEvent): Undo | undefined {
  const event = fleetEvent(recorded);
  return eventDeclaration(event).undo?.(event);
}

/** Whether a command changed a field of its resource, or created or deleted the resource. */
export function changes(command: RecordedCommand, field: string): boolean {
  return command.events.some((event) => {
    const undo = undoOf(event);
    return undo !== undefined && (undo.kind !== 'change' || undo.changes[field] !== undefined);
  });
}

/** Whether a command deleted its resource. */
export function deletes({ events }: RecordedCommand): boolean {
  return events.some((event) => undoOf(event)?.kind === 'restore');
}

/** Whether a command deleted a node together with a policy. @param id of the policy */
export function deletesPolicy({ events }: RecordedCommand, id: string): boolean {
  return events.some((recorded) => recorded.type === 'NodeDeleted' && takesPolicyAlong(recorded, id));
}

/** Whether a command deleted or restored a node together with a policy. @param id of the policy */
export function movesPolicy({ events }: RecordedCommand, id: string): boolean {
  return events.some((recorded) => takesPolicyAlong(recorded, id));
}

function takesPolicyAlong(recorded: RecordedEvent, id: string): boolean {
  const event = fleetEvent(recorded);
  if (event.type !== 'NodeDeleted' && event.type !== 'NodeRestored') return false;
  const { node_id, policies } = event.data;
  return policies.some((policy) => policyId({ ...policy, node_id }) === id);
}

/** Whether a command deleted or restored a node with an override of the connectivity settings. */
export function movesOverride({ events }: RecordedCommand): boolean {
  return events.some((recorded) => {
    const event = fleetEvent(recorded);
    return (event.type === 'NodeDeleted' || event.type === 'NodeRestored') && event.data.override !== null;
  });
}

export const verbOf = (action: string): string => action.slice(action.indexOf('.') + 1);

const work: ReadonlySet<string> = new Set(['create', 'update', 'deploy', 'apply', 'label']);

/** The part of a command about one resource; undefined when there is none. */
export function commandAbout({ stream, events }: RecordedCommand, id: string): RecordedCommand | undefined {
  const [first, ...rest] = events.filter((event) => resourceOf(event).id === id);
  return first === undefined ? undefined : { stream, events: [first, ...rest] };
}

/** The later work of users that the undo of a create would destroy, oldest first. Agent reports never block a revert. */
export function laterWork({ later }: History, reverted: (entryId: string) => boolean): readonly EntryAbout[] {
  return later
    .filter(({ id, action, actor }) => actor === 'user' && work.has(verbOf(action)) && !reverted(id))
    .toReversed();
}

const listed = 10;
const fieldsListed = 50;
/** Longer values are cut to this many characters. */
const shownChars = 200;

/** Entries with their actions, the first ten by id and the rest as a number. */
export function entries(all: readonly EntryAbout[]): string {
  const named = all.slice(0, listed).map(({ action, id }) => `${action} by the entry ${id}`);
  const more = all.length > listed ? [`${all.length - listed} more`] : [];
  return [...named, ...more].join(', ');
}

/** A sentence about a resource that no longer exists. */
export function gone({ type, id }: { readonly type: string; readonly id: string }, { deletedBy }: History): string {
  return `the ${type} ${id} is gone${deletedBy === undefined ? '' : `: ${entries([deletedBy])}`}`;
}

export interface FieldConflict {
  readonly field: string;
  readonly now: Json;
  readonly wanted: Json;
}

/** A sentence about fields that no longer have the entry's value. */
export function fieldConflicts(conflicts: readonly FieldConflict[], { changedBy }: History): string {
  const sentences = conflicts.slice(0, fieldsListed).map(({ field, now, wanted }) => {
    const by = changedBy.get(field);
    const since = by === undefined ? 'changed since' : `changed since by the entry ${by}`;
    return `${field}: is now ${shown(now)}, the revert would set ${shown(wanted)}; ${since}`;
  });
  const more = conflicts.length > fieldsListed ? [`${conflicts.length - fieldsListed} more fields`] : [];
  return [...sentences, ...more].join('. ');
}

function shown(value: Json): string {
  const text = JSON.stringify(value);
  return text.length > shownChars ? `${text.slice(0, shownChars)}…` : text;
}

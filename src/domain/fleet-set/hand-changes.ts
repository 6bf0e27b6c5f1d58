/**
 * What was changed by hand of what a set owns, since the apply that is the base of its drift: kept by the fold, because
 * neither the state nor its version says who set a value. The values of then are kept as they are in the state; how they
 * are shown is in `fleet-file/drift.ts`. A change stays known until the second apply behind it, since the revert of an
 * apply goes back to the base before. Implements `docs/contract/automation.md#the-fleet-as-a-file`, drift.
 */
import type { RecordedEvent } from '../../kernel/event.js';
import type { Json } from '../../kernel/json.js';
import type { DriftBase, DriftBases, FleetSetEvent } from './declaration.js';
import { baseOf } from './declaration.js';

export interface HandChange {
  /** Of the state; a node's override in the settings is `nodes.<id>`. */
  readonly field: string;
  /** The value that the base left. */
  readonly applied: Json;
  /** Of the event that changed it first. */
  readonly revision: number;
  /** The newest entry that changed it. */
  readonly entry_id: string;
}

/** The changes of one resource. */
export interface HandChanged {
  readonly set: string;
  /** The name that it had at last. */
  readonly name: string;
  /** Oldest first; one for each field and base. */
  readonly changes: readonly HandChange[];
}

/** A field before and after an event. */
export type ChangedField = readonly [field: string, before: Json];

/** Who changes what a set owns, in the eyes of that set. */
export type Hand =
  /** Its own document. */
  | 'apply'
  /** The revert of an apply that lies behind the base: it brings back what was, drift included. */
  | 'revert'
  | 'hand';

/** @param first the first event of a command */
export function handOf(bases: DriftBases, { type, data }: RecordedEvent, set: string): Hand {
  const event = { type, data } as unknown as FleetSetEvent;
  if (data['name'] !== set) return 'hand';
  if (event.type === 'FleetApplied') return 'apply';
  if (event.type !== 'FleetBaseMoved') return 'hand';
  const { undoes } = event.data;
  return undoes !== null && undoes >= (baseOf(bases, set)?.revision ?? -1) ? 'revert' : 'hand';
}

/** What is known of a resource after one more event. @param fields those that the event changes */
export function withChange(
  known: HandChanged | undefined,
  base: DriftBase,
  {
    hand,
    set,
    name,
    fields,
    event,
  }: {
    readonly hand: Hand;
    readonly set: string;
    readonly name: string;
    readonly fields: readonly ChangedField[];
    readonly event: RecordedEvent;
  },
): HandChanged | undefined {
  const before = known?.set === set ? known.changes : [];
  if (hand === 'revert') return known;
  const changed = new Set(fields.map(([field]) => field));
  const since = ({ revision }: HandChange): boolean => revision > base.revision;
  // A later command of the apply has set them.
  if (hand === 'apply')
    return kept(
      set,
      name,
      before.filter((one) => !(since(one) && changed.has(one.field))),
    );
  const { id: entry_id } = event.metadata.command;
  const again = before.map((one) => (since(one) && changed.has(one.field) ? { ...one, entry_id } : one));
  const noted = new Set(before.filter(since).map(({ field }) => field));
  const more = fields.flatMap(([field, applied]) =>
    noted.has(field) ? [] : [{ field, applied, revision: event.revision, entry_id }],
  );
  return kept(set, name, [...again, ...more]);
}

/** What is still known when a set gets a new base. @param former the one before, to which a revert may go back */
export function withNewBase(
  { set, name, changes }: HandChanged,
  former: DriftBase | undefined,
): HandChanged | undefined {
  return kept(set, name, former === undefined ? [] : changes.filter(({ revision }) => revision > former.revision));
}

/** The changes since a base. */
export const since = ({ changes }: HandChanged, base: DriftBase): readonly HandChange[] =>
  changes.filter(({ revision }) => revision > base.revision);

function kept(set: string, name: string, changes: readonly HandChange[]): HandChanged | undefined {
  return changes.length === 0 ? undefined : { set, name, changes };
}

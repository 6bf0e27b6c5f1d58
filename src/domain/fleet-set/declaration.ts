/**
 * The sets of the fleet as a file, each with the base of its drift: the apply that it is compared with. Which resource
 * belongs to which set is with the resource (`managed_by`); what the apply left is in `left-by-apply.ts`. And the events
 * that begin the commands about many resources. Implements `docs/contract/automation.md#the-fleet-as-a-file`.
 */
import type { Actor } from '../../kernel/event.js';
import type { JsonObject } from '../../kernel/json.js';
import { eventAudit } from '../resource/audit-change.js';
import type { Singleton } from '../resource/declaration.js';
import { pick } from '../resource/lifecycle.js';

/** Some of a set's resources, by id: those that are listed, or all but those. */
export type Some = 'all' | readonly string[] | { readonly all_but: readonly string[] };

/** Whether a resource is among some. */
export function isAmong(some: Some, id: string): boolean {
  if (some === 'all') return true;
  return isList(some) ? some.includes(id) : !some.all_but.includes(id);
}

const isList = (some: Some): some is readonly string[] => Array.isArray(some);

/** So many ids are named with an apply. */
const idsNamed = 2_000;

/** Some of all, by whichever list is shorter. @returns undefined when both are too long to name */
export function someOf(ids: readonly string[], others: readonly string[]): Some | undefined {
  if (ids.length <= others.length) return ids.length <= idsNamed ? ids : undefined;
  return others.length <= idsNamed ? { all_but: others } : undefined;
}

/** What an apply says besides what it does: what its document leaves open or does not name, which is no drift. */
export interface FleetSaid {
  /** The chains whose deployment, and the credentials whose key, the document leaves as they are. */
  readonly open?: Some;
  /** The types of which the document has a section; all of them when absent. */
  readonly sections?: readonly string[];
  /** What the set owns of these types and the document does not name. */
  readonly unnamed?: Some;
  /** The fields of the settings that the document names. */
  readonly settings?: readonly string[];
}

/** An apply, as the base of drift of its set. */
export interface DriftBase extends FleetSaid {
  readonly apply_id: string;
  readonly document_sha256: string;
  /** RFC 3339. */
  readonly at: string;
  readonly actor: Actor;
  /** Of the first event of the apply. */
  readonly revision: number;
}

/** The first event of a command that carries out a document; the other events do what it asks for. */
export interface FleetApplied {
  readonly type: 'FleetApplied';
  readonly data: FleetSaid & {
    readonly apply_id: string;
    /** The set; null for resources that no set owns. */
    readonly name: string | null;
    readonly document_sha256: string;
    /** Which of the commands of the apply this is, from 1, and how many there are. */
    readonly part: number;
    readonly parts: number;
    /** The base before the apply, to which its revert goes back, and what that one left where the fleet was otherwise. */
    readonly former?: DriftBase | null;
    readonly left?: Lefts;
  };
}

/** By owner, what documents describe of a resource as an apply left it; null for what was not there. */
export type Lefts = { readonly [owner: string]: JsonObject | null };

/** The first event of a command that takes an apply back, or brings it back, or lets go of what a set owns. */
export interface FleetBaseMoved {
  readonly type: 'FleetBaseMoved';
  readonly data: {
    readonly apply_id: string;
    readonly name: string | null;
    /** Both alike when the base stays. */
    readonly base: { readonly from: DriftBase | null; readonly to: DriftBase | null };
    /** What `from` had left where the fleet was otherwise before the command. */
    readonly left?: Lefts;
    /** What `to` had left where the fleet was otherwise before what goes back; absent when the command is like a change by hand. */
    readonly applied?: Lefts;
  };
}

export type FleetSetEvent = FleetApplied | FleetBaseMoved;

export type DriftBases = { readonly [set: string]: DriftBase };

export const fleetSetType = 'fleet';

/** The base of a set; undefined for a set that no document was applied to. */
export function baseOf(bases: DriftBases, set: string | null): DriftBase | undefined {
  return set !== null && Object.hasOwn(bases, set) ? bases[set] : undefined;
}

function withBase(bases: DriftBases, set: string, base: DriftBase | null): DriftBases {
  const others = Object.entries(bases).filter(([name]) => name !== set);
  return Object.fromEntries(base === null ? others : [...others, [set, base]]);
}

export const fleetSets: Singleton<'fleet', 'sets', DriftBases, FleetSetEvent, never> = {
  type: fleetSetType,
  id: 'fleet',
  idField: 'apply_id',
  checkpointField: 'sets',
  initial: {},
  // Their events begin commands that are decided as a whole (`domain/fleet-file`).
  decide: {},
  evolve(bases, { type, data }, { at, actor, revision }) {
    const { name } = data;
    if (name === null) return bases;
    if (type === 'FleetBaseMoved') return withBase(bases, name, data.base.to);
    const { apply_id, document_sha256, part } = data;
    // The base is the document that the apply began with, whatever its later commands are.
    if (part > 1) return bases;
    const said: FleetSaid = pick<FleetSaid, keyof FleetSaid>(data, ['open', 'sections', 'unnamed', 'settings']);
    return withBase(bases, name, { apply_id, document_sha256, at, actor, revision, ...said });
  },
  withoutNode: (state) => state,
  withNode: (state) => state,
  events: {
    FleetApplied: { schemaVersion: 1, audit: () => eventAudit('apply', []), undo: null, touches: () => [] },
    FleetBaseMoved: { schemaVersion: 1, audit: () => eventAudit('update', []), undo: null, touches: () => [] },
  },
};

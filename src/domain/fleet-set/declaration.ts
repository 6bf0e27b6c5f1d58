/**
 * The sets of the fleet as a file, each with the apply that its drift is measured from, and the events that begin commands
 * about many resources. A resource names its set itself (`managed_by`); `left-by-apply.ts` keeps what an apply left.
 * Implements `docs/contract/automation.md#the-fleet-as-a-file`.
 */
import { eventOf, streams, type Actor, type RecordedEvent } from '../../kernel/event.js';
import type { JsonObject } from '../../kernel/json.js';
import { eventAudit } from '../resource/audit-change.js';
import { onRecord, type Singleton } from '../resource/declaration.js';
import { pick } from '../resource/lifecycle.js';

/** A choice of a set's resources, by id: the listed ones, or all but the listed ones. */
export type Some = 'all' | readonly string[] | { readonly all_but: readonly string[] };

export function isAmong(some: Some, id: string): boolean {
  if (some === 'all') return true;
  return 'all_but' in some ? !some.all_but.includes(id) : some.includes(id);
}

/** The maximum number of ids that an apply names. */
const idsNamed = 2_000;

/** The ids, by the shorter of both lists. @returns undefined when both are too long */
export function someOf(ids: readonly string[], others: readonly string[]): Some | undefined {
  if (ids.length <= others.length) return ids.length <= idsNamed ? ids : undefined;
  return others.length <= idsNamed ? { all_but: others } : undefined;
}

/** What the document of an apply leaves open or does not name, which never counts as drift. */
export interface DocumentScope {
  /** The chains whose deployment, and the credentials whose key, the document leaves alone. */
  readonly open?: Some;
  /** The types that have a section in the document; all when absent. */
  readonly sections?: readonly string[];
  /** The set's resources of these types that the document does not name. */
  readonly unnamed?: Some;
  /** The fields of the settings that the document names. */
  readonly settings?: readonly string[];
}

/** The apply from which a set's drift is measured. */
export interface DriftBase extends DocumentScope {
  readonly apply_id: string;
  readonly document_sha256: string;
  /** RFC 3339. */
  readonly at: string;
  readonly actor: Actor;
  /** The revision of the apply's first event. */
  readonly revision: number;
}

/** The first event of a command that applies a document; the others are its changes. */
export interface FleetApplied {
  readonly type: 'FleetApplied';
  readonly data: DocumentScope & {
    readonly apply_id: string;
    /** The set; null for resources that no set owns. */
    readonly name: string | null;
    readonly document_sha256: string;
    /** The number of this command in the apply, from 1, and their count. */
    readonly part: number;
    readonly parts: number;
    /** The base before the apply, which its revert restores, and what that base had left where the fleet differed. */
    readonly former?: DriftBase | null;
    readonly left?: Lefts;
  };
}

/** The described fields of resources as an apply left them, by owner; null for a resource that did not exist. */
export type Lefts = { readonly [owner: string]: JsonObject | null };

/** The first event of a command that reverts an apply, reverts such a revert, or releases a set. */
export interface FleetBaseMoved {
  readonly type: 'FleetBaseMoved';
  readonly data: {
    readonly apply_id: string;
    readonly name: string | null;
    /** Equal when the base stays. */
    readonly base: { readonly from: DriftBase | null; readonly to: DriftBase | null };
    /** What `from` had left where the fleet differed before the command. */
    readonly left?: Lefts;
    /**
     * What `to` had left where the fleet differed before the reverted command; absent when the command counts as a manual
     * edit.
     */
    readonly applied?: Lefts;
  };
}

export type FleetSetEvent = FleetApplied | FleetBaseMoved;

/** The first event of a command about many resources. */
export const setEvent = (event: RecordedEvent): FleetSetEvent => eventOf(streams.fleet, event);

export type DriftBases = { readonly [set: string]: DriftBase };

export const fleetSetType = 'fleet';

/** The base of a set; undefined before its first apply. */
export function baseOf(bases: DriftBases, set: string | null): DriftBase | undefined {
  return set !== null && Object.hasOwn(bases, set) ? bases[set] : undefined;
}

function withBase(bases: DriftBases, set: string, base: DriftBase | null): DriftBases {
  const others = Object.entries(bases).filter(([name]) => name !== set);
  return Object.fromEntries(base === null ? others : [...others, [set, base]]);
}

export const fleetSets: Singleton<'fleet', DriftBases, FleetSetEvent, never> = {
  type: fleetSetType,
  id: 'fleet',
  idField: 'apply_id',
  initial: {},
  // `domain/fleet-file` decides the commands that these events begin.
  decide: {},
  evolve(bases, { type, data }, { at, actor, revision }) {
    const { name } = data;
    if (name === null) return bases;
    if (type === 'FleetBaseMoved') return withBase(bases, name, data.base.to);
    const { apply_id, document_sha256, part } = data;
    if (part > 1) return bases;
    const scope = pick<DocumentScope, keyof DocumentScope>(data, ['open', 'sections', 'unnamed', 'settings']);
    return withBase(bases, name, { apply_id, document_sha256, at, actor, revision, ...scope });
  },
  events: {
    FleetApplied: { audit: () => eventAudit('apply', []), ...onRecord },
    FleetBaseMoved: { audit: () => eventAudit('update', []), ...onRecord },
  },
};

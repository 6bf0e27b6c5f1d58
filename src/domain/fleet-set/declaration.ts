/**
 * The sets of the fleet as a file, each with the document that was applied last, and the event that begins each command of
 * an apply. Which resource belongs to which set is with the resource (`managed_by`). Implements
 * `docs/contract/automation.md#the-fleet-as-a-file`.
 */
import { eventAudit } from '../resource/audit-change.js';
import type { Singleton } from '../resource/declaration.js';
import type { SingletonKey } from '../resource/fleet-view.js';

/** The first event of a command that carries out a document; the other events do what it asks for. */
export interface FleetApplied {
  readonly type: 'FleetApplied';
  readonly data: {
    readonly apply_id: string;
    /** The set; null for resources that no set owns. */
    readonly name: string | null;
    readonly document_sha256: string;
    /** Which of the commands of the apply this is, from 1, and how many there are. */
    readonly part: number;
    readonly parts: number;
  };
}

interface AppliedSet {
  readonly apply_id: string;
  readonly document_sha256: string;
}

type AppliedSets = { readonly [set: string]: AppliedSet };

export const setsKey: SingletonKey<AppliedSets> = { singleton: 'fleet' };

export const fleetSets: Singleton<'fleet', 'sets', AppliedSets, FleetApplied, never> = {
  type: 'fleet',
  id: 'fleet',
  idField: 'apply_id',
  checkpointField: 'sets',
  initial: {},
  decide: {},
  evolve(state, { data: { apply_id, name, document_sha256 } }) {
    return name === null ? state : { ...state, [name]: { apply_id, document_sha256 } };
  },
  withoutNode: (state) => state,
  withNode: (state) => state,
  events: {
    FleetApplied: {
      schemaVersion: 1,
      audit: () =>
        eventAudit('apply', [], 'an apply is not taken back as a whole; apply the document that was there before'),
      undo: null,
      touches: () => [],
    },
  },
};

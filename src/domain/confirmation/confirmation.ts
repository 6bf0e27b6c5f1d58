/**
 * Confirmed changes: a command's own append says who must confirm it, and a change that a person must confirm has a
 * state of its own. The fleet's fold keeps which nodes need a confirmation; `src/delivery/` tells their agents, and
 * `src/rollouts/` takes back what no person has confirmed in time. Implements
 * `docs/contract/rollouts.md#confirmed-changes`.
 */
import type { Actor } from '../../kernel/event.js';
import type { RunClock } from '../../kernel/run-clock.js';
import type { Owner } from '../references/references.js';
import type { ResourceKey } from '../resource/fleet-view.js';
import type { ResourceMeta } from '../resource/meta.js';

/** Who confirms a change: the service for each node that it reaches, or a person. */
export type ConfirmedBy = 'node' | 'manual';

/** How a command is to be confirmed. */
export interface ConfirmationAsk {
  readonly by: ConfirmedBy;
  readonly secs: number;
}

/** The confirmation of a change by a person. */
export interface ConfirmationState extends ResourceMeta {
  /** The id of its command's audit entry, which has no other confirmation. */
  readonly name: string;
  /** The revision of its first event. */
  readonly revision: number;
  readonly state: 'waiting' | EndOfConfirmation;
  readonly secs: number;
  /** What the command changed, as `type/id`: no later command may change it until this is confirmed or taken back. */
  readonly owners: readonly Owner[];
  /** How long the wait has lasted. */
  readonly clock: RunClock;
  /** When and by whom it was confirmed or taken back. RFC 3339; null before. */
  readonly ended_at: string | null;
  readonly ended_by: Actor | null;
  /** Why it could not be taken back. */
  readonly error: string | null;
}

/** Confirmed by a person; ended with the revert of its entry; or the revert in time was refused. */
export type EndOfConfirmation = 'confirmed' | 'reverted' | 'refused';

/** Part of the append of the command that is to be confirmed. */
export interface ConfirmationAsked {
  readonly type: 'ConfirmationAsked';
  readonly data: ConfirmationAsk & {
    readonly confirmation_id: string;
    /** For a confirmation by a person: what the command changed. */
    readonly owners?: readonly Owner[];
  };
}

export interface ConfirmationEnded {
  readonly type: 'ConfirmationEnded';
  readonly data: {
    readonly confirmation_id: string;
    readonly entry_id: string;
    readonly how: EndOfConfirmation;
    readonly error: string | null;
  };
}

/** Sets the clock after a time in which no instance served. */
export interface ConfirmationClockSet {
  readonly type: 'ConfirmationClockSet';
  readonly data: { readonly confirmation_id: string; readonly ran_ms: number; readonly runs: boolean };
}

export type ConfirmationEvent = ConfirmationAsked | ConfirmationEnded | ConfirmationClockSet;

/** The service's own do nothing unless the confirmation is still at the version that they name. */
export type ConfirmationCommand =
  | { readonly type: 'ConfirmChange'; readonly id: string }
  | { readonly type: 'RefuseTimedRevert'; readonly id: string; readonly version: number; readonly error: string }
  | {
      readonly type: 'SetConfirmationClock';
      readonly id: string;
      readonly version: number;
      readonly ran_ms: number;
      readonly runs: boolean;
    };

export const confirmationKey: ResourceKey<ConfirmationState> = { type: 'confirmation' };

/** The last command whose change a node must confirm, by the revision of its last event. */
export interface Need {
  readonly revision: number;
  readonly secs: number;
}

/** The generation from which a node waits for a confirmation, and how long its agent waits. */
export interface NodeNeed {
  readonly generation: number;
  readonly secs: number;
}

/** What a command of these events asks of the nodes that it touches; undefined for nothing. */
export function askedOfNodes(events: readonly { readonly type: string; readonly data: object }[]): number | undefined {
  // Nearly all commands have one event, and this would be the second.
  if (events.length < 2) return undefined;
  for (const { type, data } of events) {
    if (type !== 'ConfirmationAsked') continue;
    const { by, secs } = data as ConfirmationAsked['data'];
    if (by === 'node') return secs;
  }
  return undefined;
}

/** When the time is over, in wall-clock milliseconds. @param at now, RFC 3339, where a stopped clock would continue */
export function waitsUntil({ clock, secs }: Pick<ConfirmationState, 'clock' | 'secs'>, at: string): number {
  return Date.parse(clock.since ?? at) + secs * 1_000 - clock.ran_ms;
}

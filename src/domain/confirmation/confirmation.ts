/**
 * Confirmed changes: what a command says in its own append of who must confirm it. A node's need of a confirmation is kept with
 * the fleet's fold; what is sent because of it is in `src/delivery/`. Implements `docs/contract/rollouts.md#confirmed-changes`.
 */
import type { ResourceKey } from '../resource/fleet-view.js';
import type { ResourceMeta } from '../resource/meta.js';

/** Who confirms a change: the service for each node that it reaches, or a person. */
export type ConfirmedBy = 'node';

/** How a command is to be confirmed. */
export interface ConfirmationAsk {
  readonly by: ConfirmedBy;
  readonly secs: number;
}

export interface ConfirmationState extends ResourceMeta {
  /** Its id: a confirmation has no name. */
  readonly name: string;
}

/** Lies in the append of the command that is to be confirmed. */
export interface ConfirmationAsked {
  readonly type: 'ConfirmationAsked';
  readonly data: ConfirmationAsk & { readonly confirmation_id: string };
}

export type ConfirmationEvent = ConfirmationAsked;

export const confirmationKey: ResourceKey<ConfirmationState> = { type: 'confirmation' };

/** The last command of which a node must confirm the change: the revision of its last event. */
export interface Need {
  readonly revision: number;
  readonly secs: number;
}

/** From which generation on a node waits for a confirmation, and how long its agent does. */
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

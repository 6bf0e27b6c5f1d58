/**
 * The ends of confirmations by a person, and the fold of their events. Implements `docs/contract/rollouts.md#confirmed-changes`,
 * "By a person".
 */
import { unreachable } from '../../kernel/errors.js';
import { ok } from '../../kernel/result.js';
import { ranMs } from '../../kernel/run-clock.js';
import type { Decisions, EventContext } from '../resource/declaration.js';
import type { FleetView } from '../resource/fleet-view.js';
import { firstVersion, nextVersion } from '../resource/meta.js';
import { refuse, type Decision } from '../resource/refusal.js';
import { existing } from '../resource/rules.js';
import {
  confirmationKey,
  type ConfirmationCommand,
  type ConfirmationEnded,
  type ConfirmationEvent,
  type ConfirmationState,
  type EndOfConfirmation,
} from './confirmation.js';

const ended = (
  { id, name }: ConfirmationState,
  how: EndOfConfirmation,
  error: string | null = null,
): ConfirmationEnded => ({
  type: 'ConfirmationEnded',
  data: { confirmation_id: id, entry_id: name, how, error },
});

/** A waiting confirmation at the version that the service knows. */
function waiting(fleet: FleetView, id: string, version: number): ConfirmationState | undefined {
  const found = fleet.get(confirmationKey, id);
  return found?.state === 'waiting' && found.version === version ? found : undefined;
}

export const decideConfirmation: Decisions<ConfirmationCommand, ConfirmationEvent> = {
  ConfirmChange(fleet, { id }): Decision<ConfirmationEvent> {
    const found = existing(fleet, confirmationKey, { id });
    if (!found.ok) return found;
    if (found.value.state === 'waiting') return ok([ended(found.value, 'confirmed')]);
    return refuse('conflict', `the change of this entry waits for no confirmation: ${found.value.state}`);
  },
  RefuseTimedRevert(fleet, { id, version, error }) {
    const found = waiting(fleet, id, version);
    return ok(found === undefined ? [] : [ended(found, 'refused', error)]);
  },
  SetConfirmationClock(fleet, { id, version, ran_ms, runs }) {
    if (waiting(fleet, id, version) === undefined) return ok([]);
    return ok([{ type: 'ConfirmationClockSet', data: { confirmation_id: id, ran_ms, runs } }]);
  },
};

/** The end of an entry's waiting confirmation, which goes with the entry's revert. */
export function endsWithRevert(fleet: FleetView, entryId: string): readonly ConfirmationEnded[] {
  const found = fleet.get(confirmationKey, fleet.idOfName(confirmationKey.type, entryId));
  return found?.state === 'waiting' ? [ended(found, 'reverted')] : [];
}

export function evolveConfirmation(
  state: ConfirmationState | undefined,
  event: ConfirmationEvent,
  { at, commandId, revision, actor }: EventContext,
): ConfirmationState | undefined {
  switch (event.type) {
    case 'ConfirmationAsked': {
      const { confirmation_id, by, secs, owners = [] } = event.data;
      if (by === 'node' || state !== undefined) return state;
      const clock = { ran_ms: 0, since: at };
      const open = { state: 'waiting', ended_at: null, ended_by: null, error: null } as const;
      return { ...firstVersion(confirmation_id, at), name: commandId, revision, secs, owners, clock, ...open };
    }
    case 'ConfirmationEnded': {
      const { how, error } = event.data;
      // Its clock keeps showing until when the wait would have lasted.
      const clock = state && { ran_ms: ranMs(state.clock, at), since: at };
      return state && clock && nextVersion({ ...state, state: how, clock, ended_at: at, ended_by: actor, error }, at);
    }
    case 'ConfirmationClockSet': {
      const { ran_ms, runs } = event.data;
      return state && nextVersion({ ...state, clock: { ran_ms, since: runs ? at : null } }, at);
    }
    default:
      return unreachable(event);
  }
}

/**
 * Decides the revert of a profile edit. The fields are sealed, so no sentence shows their values. `revert/decide.ts`
 * decides the reverts of the fleet. Implements `docs/contract/domain.md#audit-and-revert`.
 */
import { jsonEqual } from '../../kernel/json.js';
import { err, ok } from '../../kernel/result.js';
import { alreadyReverted, notRevertible, type RevertTable } from '../aggregate/reverts.js';
import type { Table } from '../aggregate/containers.js';
import { inverseOf, type Changes } from '../resource/change.js';
import { refuse, type Decision } from '../resource/refusal.js';
import {
  accountEvent,
  auditOfAccountEvent,
  personalFields,
  type AccountCommand,
  type AccountEvent,
} from './declaration.js';
import type { ProfileChanges, UserState } from './user.js';

type RevertUserProfile = Extract<AccountCommand, { readonly type: 'RevertUserProfile' }>;

export function decideProfileRevert(
  { users, reverts }: { readonly users: Pick<Table<UserState>, 'get'>; readonly reverts: Pick<RevertTable, 'get'> },
  { entry: { events }, changedBy }: RevertUserProfile,
): Decision<AccountEvent> {
  const event = accountEvent(events[0]);
  if (event.type !== 'UserProfileUpdated') {
    return err(notRevertible(auditOfAccountEvent(event).notRevertibleBecause ?? ''));
  }
  const reverted = alreadyReverted(reverts, events[0].metadata.command.id);
  if (reverted !== undefined) return err(reverted);
  const { user_id, changes } = event.data;
  const user = users.get(user_id);
  if (user === undefined) return refuse('conflict', `the user ${user_id} is gone`);
  const changed = changedFields(user, changes);
  if (changed.length > 0) {
    const sentences = changed.map((field) => {
      const since = changedBy.get(field);
      return `${field}: changed since${since === undefined ? '' : ` by the entry ${since}`}`;
    });
    return refuse('conflict', sentences.join('. '));
  }
  const back = inverseOf(changes as Changes) as ProfileChanges;
  return ok([{ type: 'UserProfileUpdated', data: { user_id, changes: back } }]);
}

/** The fields that no longer have the value that the edit set. */
export function changedFields(user: UserState, changes: ProfileChanges): readonly (typeof personalFields)[number][] {
  return personalFields.filter((field) => changes[field] !== undefined && !jsonEqual(user[field], changes[field].to));
}

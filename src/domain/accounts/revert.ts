/**
 * Decides the revert of an edit of a profile. The fields are sealed, so no sentence shows their values. The fleet's
 * reverts are decided in `revert/decide.ts`. Implements `docs/contract/domain.md#audit-and-revert`.
 */
import { jsonEqual } from '../../kernel/json.js';
import { err, ok } from '../../kernel/result.js';
import type { RevertTable } from '../aggregate/reverts.js';
import { alreadyReverted, notRevertible } from '../aggregate/reverts.js';
import type { Table } from '../aggregate/containers.js';
import type { Decision } from '../resource/refusal.js';
import { refuse } from '../resource/refusal.js';
import { accountEvent, auditOfAccountEvent, personalFields } from './declaration.js';
import type { AccountCommand, AccountEvent, UserState } from './user.js';

type RevertUserProfile = Extract<AccountCommand, { readonly type: 'RevertUserProfile' }>;
type ProfileChanges = Extract<AccountEvent, { readonly type: 'UserProfileUpdated' }>['data']['changes'];

interface AccountsToRevert {
  readonly users: Pick<Table<UserState>, 'get'>;
  readonly reverts: Pick<RevertTable, 'get'>;
}

export function decideProfileRevert(
  { users, reverts }: AccountsToRevert,
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
  const { display_name, email } = changes;
  const back = {
    ...(display_name === undefined ? {} : { display_name: { from: display_name.to, to: display_name.from } }),
    ...(email === undefined ? {} : { email: { from: email.to, to: email.from } }),
  };
  return ok([{ type: 'UserProfileUpdated', data: { user_id, changes: back } }]);
}

/** The fields that no longer have the value that the edit set. */
export function changedFields(user: UserState, changes: ProfileChanges): readonly (typeof personalFields)[number][] {
  return personalFields.filter((field) => changes[field] !== undefined && !jsonEqual(user[field], changes[field].to));
}

/** The fold of a user's events. */
import { unreachable } from '../../kernel/errors.js';
import { firstVersion, nextVersion } from '../resource/meta.js';
import type { AccountEvent, UserState } from './user.js';

/**
 * The user after one event. Ignores an event for a user that does not exist, and the creation of one that does: replayed,
 * it would bring back the first password and end the count of tokens.
 */
export function evolveUser(state: UserState | undefined, event: AccountEvent, at: string): UserState | undefined {
  if (event.type === 'UserCreated') {
    if (state !== undefined) return state;
    const { user_id, ...fields } = event.data;
    return { ...fields, ...firstVersion(user_id, at), token_version: 1 };
  }
  if (state === undefined) return undefined;
  switch (event.type) {
    case 'UserProfileUpdated': {
      const { display_name, email } = event.data.changes;
      const next = {
        ...state,
        display_name: display_name === undefined ? state.display_name : display_name.to,
        email: email === undefined ? state.email : email.to,
      };
      return nextVersion(next, at);
    }
    case 'UserPasswordChanged': {
      const { password, rehashed } = event.data;
      return nextVersion({ ...state, password, token_version: state.token_version + (rehashed ? 0 : 1) }, at);
    }
    default:
      return unreachable(event);
  }
}

/** Folds a user's events into its state; pure. */
import { unreachable } from '../../kernel/errors.js';
import { born, touched } from '../resource/meta.js';
import type { AccountEvent, UserState } from './user.js';

/** The user after one event. */
export function evolveUser(state: UserState | undefined, event: AccountEvent, at: string): UserState | undefined {
  if (event.type === 'UserCreated') {
    const { user_id, ...fields } = event.data;
    return { ...fields, ...born(user_id, at), token_version: 1 };
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
      return touched(next, at);
    }
    case 'UserPasswordChanged':
      return touched({ ...state, password: event.data.password, token_version: state.token_version + 1 }, at);
    default:
      return unreachable(event);
  }
}

/** The events of accounts in the log and the audit, which masks secrets. Implements `docs/contract/rest.md#audit`. */
import { unreachable } from '../../kernel/errors.js';
import { eventOf, streams, type RecordedEvent } from '../../kernel/event.js';
import { addedFields, eventAudit, masked, removedFields, type EventAudit } from '../resource/audit-change.js';
import type { EventDeclaration } from '../resource/declaration.js';
import { pick, type AnyEvent } from '../resource/lifecycle.js';
import type { ApiTokenCommand, ApiTokenEvent } from './api-token.js';
import type { UserCommand, UserEvent } from './user.js';

export type AccountEvent = UserEvent | ApiTokenEvent;
export type AccountCommand = UserCommand | ApiTokenCommand;

export const userType = 'user';
export const sessionType = 'session';
export const apiTokenType = 'api_token';

/** Sealed fields, whose values the audit masks. */
export const personalFields = ['display_name', 'email'] as const;

type Declarations = {
  readonly [T in AccountEvent['type']]: EventDeclaration<Extract<AccountEvent, { readonly type: T }>>;
};

export const accountEvents: Declarations = {
  UserCreated: {
    audit: ({ data }) =>
      eventAudit(
        'create',
        addedFields({
          ...pick(data, ['username', 'role']),
          password: masked,
          ...Object.fromEntries(personalFields.filter((field) => data[field] !== null).map((field) => [field, masked])),
        }),
        'users are not deleted',
      ),
  },
  UserProfileUpdated: {
    audit: ({ data }) =>
      eventAudit(
        'update',
        Object.keys(data.changes).map((path) => ({ path, before: masked, after: masked })),
      ),
  },
  UserPasswordChanged: {
    audit: ({ data: { ended_api_tokens: ended } }) =>
      eventAudit(
        'update',
        [
          { path: 'password', before: masked, after: masked },
          ...(ended === undefined ? [] : [{ path: 'api_tokens', before: ended, after: [] }]),
        ],
        'a password can be replaced, not taken back',
      ),
  },
  SignedOut: {
    audit: () => eventAudit('sign_out', [], 'a sign-out is a fact'),
  },
  ApiTokenCreated: {
    audit: ({ data }) => eventAudit('create', addedFields(shownOfToken(data)), 'delete the API token instead'),
  },
  ApiTokenDeleted: {
    audit: ({ data }) =>
      eventAudit('delete', removedFields(shownOfToken(data)), 'its text is not stored; create another API token'),
  },
};

const shownOfToken = (data: ApiTokenEvent['data']): object => pick(data, ['name', 'role', 'from', 'expires_at']);

/** The resource that an event is about. */
export function accountSubject({ type, data }: AccountEvent): { readonly type: string; readonly id: string } {
  switch (type) {
    case 'ApiTokenCreated':
    case 'ApiTokenDeleted':
      return { type: apiTokenType, id: data.api_token_id };
    case 'SignedOut':
      return { type: sessionType, id: data.user_id };
    case 'UserCreated':
    case 'UserProfileUpdated':
    case 'UserPasswordChanged':
      return { type: userType, id: data.user_id };
    default:
      return unreachable(type);
  }
}

export function auditOfAccountEvent(event: AccountEvent): EventAudit {
  return (accountEvents[event.type] as EventDeclaration<AnyEvent>).audit(event);
}

/** A recorded event as an event of an account. */
export const accountEvent = (event: RecordedEvent): AccountEvent => eventOf(streams.accounts, event);

/**
 * The events of users for the log and the audit, which shows no personal data and no passwords.
 * Implements `docs/contract/rest.md#audit`.
 */
import type { RecordedEvent } from '../../kernel/event.js';
import { streams } from '../../kernel/event.js';
import type { EventAudit } from '../resource/audit-change.js';
import { eventAudit, masked } from '../resource/audit-change.js';
import type { EventDeclaration } from '../resource/declaration.js';
import type { AnyEvent } from '../resource/lifecycle.js';
import type { AccountEvent } from './user.js';

export const userType = 'user';

/** Fields that are sealed; the audit says that they are set, not what they are. */
export const personalFields = ['display_name', 'email'] as const;

type Declarations = {
  readonly [T in AccountEvent['type']]: EventDeclaration<Extract<AccountEvent, { readonly type: T }>>;
};

export const accountEvents: Declarations = {
  UserCreated: {
    schemaVersion: 1,
    audit: ({ data }) =>
      eventAudit(
        'create',
        [
          { path: 'username', before: null, after: data.username },
          { path: 'role', before: null, after: data.role },
          { path: 'password', before: null, after: masked },
          ...personalFields
            .filter((path) => data[path] !== null)
            .map((path) => ({ path, before: null, after: masked })),
        ],
        'users are not deleted',
      ),
  },
  UserProfileUpdated: {
    schemaVersion: 1,
    audit: ({ data }) =>
      eventAudit(
        'update',
        Object.keys(data.changes).map((path) => ({ path, before: masked, after: masked })),
      ),
  },
  UserPasswordChanged: {
    schemaVersion: 1,
    audit: () =>
      eventAudit(
        'update',
        [{ path: 'password', before: masked, after: masked }],
        'a password can be replaced, not taken back',
      ),
  },
  SignedOut: {
    schemaVersion: 1,
    audit: () => eventAudit('sign_out', [], 'a sign-out is a fact'),
  },
};

/** What the audit shows of an event. */
export function auditOfAccountEvent(event: AccountEvent): EventAudit {
  const declaration: EventDeclaration<AnyEvent> = accountEvents[event.type] as unknown as EventDeclaration<AnyEvent>;
  return declaration.audit(event);
}

/** A recorded event as an event of an account. Its type and shape must have passed `log/upcast.ts`. */
export function accountEvent(event: RecordedEvent): AccountEvent {
  if (event.stream !== streams.accounts) throw new Error(`${event.stream}@${event.revision} is no account event`);
  return event as unknown as AccountEvent;
}

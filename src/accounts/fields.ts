/**
 * The sealed fields of a user: password hash, display name and e-mail address. They are opened only for the answer that
 * shows them, so no list or fold holds them in the clear. Implements `docs/contract/rest.md#authentication-and-roles`.
 */
import type { UpdateMeFields, UserView } from '../commands/accounts-port.js';
import type { UserState } from '../domain/accounts/user.js';
import { ServiceError } from '../kernel/errors.js';
import { streams } from '../kernel/event.js';
import type { Keyring, Place } from '../security/keyring.js';
import type { SealedValue } from '../security/sealing.js';

type Field = 'password' | 'display_name' | 'email';
type Personal = Pick<UserState, 'id' | 'display_name' | 'email'>;

/** The place that a user's field is sealed for. */
export function userField(userId: string, field: Field): Place {
  return { stream: streams.accounts, resourceId: userId, field };
}

/** Personal fields as an edit stores them: undefined for unchanged, null for cleared. */
export interface SealedProfile {
  readonly display_name: SealedValue | null | undefined;
  readonly email: SealedValue | null | undefined;
}

export interface UserFields {
  /** The field in clear text; null if not set. @throws ServiceError `internal` */
  open(user: Pick<UserState, 'id' | Field>, field: Field): string | null;
  /** The user as answers show it. */
  show(user: UserState): UserView;
  sealPassword(userId: string, phc: string): SealedValue;
  /** Seals the fields that differ from the stored ones. @param user a new user has no fields */
  sealProfile(user: Personal, fields: UpdateMeFields): SealedProfile;
}

export function createUserFields(keyring: Keyring): UserFields {
  function opened(userId: string, field: Field, sealed: SealedValue | null): string | null {
    if (sealed === null) return null;
    const result = keyring.open(sealed, userField(userId, field));
    if (result.kind === 'opened') return Buffer.from(result.plaintext).toString('utf8');
    throw new ServiceError('internal', 'a field of the account cannot be opened', { cause: result.reason });
  }

  function sealed(
    user: Personal,
    field: 'display_name' | 'email',
    value: string | null | undefined,
  ): SealedValue | null | undefined {
    if (value === undefined || value === null) return value;
    if (value === opened(user.id, field, user[field])) return undefined;
    return keyring.seal(Buffer.from(value), userField(user.id, field));
  }

  return {
    open: (user, field) => opened(user.id, field, user[field]),
    show(user) {
      const { id, username, role, created_at, updated_at, version } = user;
      const display_name = opened(id, 'display_name', user.display_name);
      const email = opened(id, 'email', user.email);
      return { id, username, display_name, email, role, created_at, updated_at, version };
    },
    sealPassword: (userId, phc) => keyring.seal(Buffer.from(phc), userField(userId, 'password')),
    sealProfile: (user, fields) => ({
      display_name: sealed(user, 'display_name', fields.display_name),
      email: sealed(user, 'email', fields.email),
    }),
  };
}

/**
 * The sealed fields of a user: the password hash under a key of its own, display name and e-mail address under one personal
 * key. They are opened for the answer that shows them and for nothing else, so no list or fold holds them in clear.
 * Implements `docs/contract/rest.md#authentication-and-roles`.
 */
import type { UpdateMeFields, UserView } from '../commands/handlers-port.js';
import type { UserState } from '../domain/accounts/user.js';
import { ServiceError } from '../kernel/errors.js';
import { streams } from '../kernel/event.js';
import type { Keyring } from '../security/keyring.js';
import type { SealContext, SealedValue } from '../security/sealing.js';

type Field = 'password' | 'display_name' | 'email';
type Personal = Pick<UserState, 'id' | 'display_name' | 'email'>;

/** The context that a user's field is sealed in. */
export function userField(userId: string, field: Field): SealContext {
  return { stream: streams.accounts, resourceId: userId, field };
}

/** Deletes the key of a password hash that the user no longer has, unless a personal field is sealed by the same key. */
export async function shredPassword(keyring: Keyring, user: UserState, keyId: string): Promise<void> {
  const personal = [user.display_name?.key_id, user.email?.key_id];
  if (!personal.includes(keyId)) await keyring.shred(keyId);
}

/** Personal fields as an edit stores them: undefined for one that stays, null for one that is cleared. */
export interface SealedProfile {
  readonly display_name: SealedValue | null | undefined;
  readonly email: SealedValue | null | undefined;
  /** A value under a key that was made for this edit; null when the user had a key, or nothing was sealed. */
  readonly underNewKey: SealedValue | null;
}

export interface UserFields {
  /** The field in clear text; null when it is not set or its key was shredded. @throws ServiceError `internal` */
  open(user: Pick<UserState, 'id' | Field>, field: Field): Promise<string | null>;
  /** The user as answers show it. */
  show(user: UserState): Promise<UserView>;
  /** Seals a password hash under a new key. */
  sealPassword(userId: string, phc: string): Promise<SealedValue>;
  /** Seals the fields that differ from the stored ones. @param user one without fields is new */
  sealProfile(user: Personal, fields: UpdateMeFields): Promise<SealedProfile>;
}

export function createUserFields(keyring: Keyring): UserFields {
  async function opened(userId: string, field: Field, sealed: SealedValue | null): Promise<string | null> {
    if (sealed === null) return null;
    const result = await keyring.open(sealed, userField(userId, field));
    if (result.kind === 'opened') return Buffer.from(result.plaintext).toString('utf8');
    if (result.kind === 'shredded') return null;
    throw new ServiceError('internal', 'a field of the account cannot be opened', { cause: result.reason });
  }

  /** @param keyId of the user's personal key; without one, a new key is made */
  async function sealed(
    user: Personal,
    field: 'display_name' | 'email',
    value: string | null | undefined,
    keyId: string | undefined,
  ): Promise<SealedValue | null | undefined> {
    if (value === undefined || value === null) return value;
    if (value === (await opened(user.id, field, user[field]))) return undefined;
    return keyring.seal(Buffer.from(value), userField(user.id, field), keyId);
  }

  return {
    open: (user, field) => opened(user.id, field, user[field]),
    async show(user) {
      const [display_name, email] = await Promise.all([
        opened(user.id, 'display_name', user.display_name),
        opened(user.id, 'email', user.email),
      ]);
      const { id, username, role, created_at, updated_at, version } = user;
      return { id, username, display_name, email, role, created_at, updated_at, version };
    },
    sealPassword: (userId, phc) => keyring.seal(Buffer.from(phc), userField(userId, 'password')),
    async sealProfile(user, fields) {
      const keyId = user.display_name?.key_id ?? user.email?.key_id;
      const display_name = await sealed(user, 'display_name', fields.display_name, keyId);
      // Both fields share one key: when the first is sealed just now, the second uses its key.
      const email = await sealed(user, 'email', fields.email, display_name?.key_id ?? keyId);
      return { display_name, email, underNewKey: keyId === undefined ? (display_name ?? email ?? null) : null };
    },
  };
}

/**
 * Sign-in, tokens and the caller's own account: the hashing, sealing and rate limits around the accounts. Their rules are
 * in `src/domain/accounts`. Implements `docs/contract/rest.md#authentication-and-roles`.
 */
import { userByName } from '../domain/accounts/accounts.js';
import type { Accounts } from '../domain/accounts/accounts.js';
import type { AccountCommand, UserState } from '../domain/accounts/user.js';
import { sleep } from '../kernel/background.js';
import { errorText, ServiceError } from '../kernel/errors.js';
import { streams } from '../kernel/event.js';
import type { Logger } from '../kernel/logger.js';
import type { Keyring } from '../security/keyring.js';
import type { LoginLimiter } from '../security/login-limiter.js';
import type { PasswordHasher } from '../security/passwords.js';
import type { SealContext, SealedValue } from '../security/sealing.js';
import type { Tokens } from '../security/tokens.js';
import type { AccountsView } from './view.js';
import type { CommandHandlers, UserView } from '../commands/handlers-port.js';
import type { FactRecorder, Gateway } from '../commands/port.js';
import { systemContext } from '../commands/system.js';

export interface AccountHandlerOptions {
  readonly gateway: Gateway<Accounts, AccountCommand>;
  readonly view: AccountsView;
  readonly keyring: Keyring;
  readonly hasher: PasswordHasher;
  readonly limiter: LoginLimiter;
  readonly tokens: Tokens;
  readonly facts: FactRecorder;
  readonly logger: Logger;
}

const busyRetrySeconds = 1;
const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8');

/** The context that a user's field is sealed in. */
export function userField(userId: string, field: 'password' | 'display_name' | 'email'): SealContext {
  return { stream: streams.accounts, resourceId: userId, field };
}

/** Deletes the key of a password hash that the user no longer has, unless a personal field is sealed by the same key. */
export async function shredPassword(keyring: Keyring, user: UserState, keyId: string): Promise<void> {
  const personal = [user.display_name?.key_id, user.email?.key_id];
  if (!personal.includes(keyId)) await keyring.shred(keyId);
}

export function createAccountHandlers(options: AccountHandlerOptions): CommandHandlers['accounts'] {
  const { gateway, view, keyring, hasher, limiter, tokens, facts, logger } = options;

  /** The field in clear text; null when it is not set or its key was shredded. */
  async function openField(user: UserState, field: 'password' | 'display_name' | 'email'): Promise<string | null> {
    const sealed = user[field];
    if (sealed === null) return null;
    const opened = await keyring.open(sealed, userField(user.id, field));
    if (opened.kind === 'opened') return text(opened.plaintext);
    if (opened.kind === 'shredded') return null;
    throw new ServiceError('internal', 'a field of the account cannot be opened', { cause: opened.reason });
  }

  async function show(user: UserState): Promise<UserView> {
    const [display_name, email] = await Promise.all([openField(user, 'display_name'), openField(user, 'email')]);
    const { id, username, role, created_at, updated_at, version } = user;
    return { id, username, display_name, email, role, created_at, updated_at, version };
  }

  /** The new value, sealed under the user's personal key. Undefined when the field does not change, null to clear it. */
  async function sealField(
    user: UserState,
    field: 'display_name' | 'email',
    value: string | null | undefined,
  ): Promise<SealedValue | null | undefined> {
    if (value === undefined || value === null) return value;
    if (value === (await openField(user, field))) return undefined;
    const personalKey = user.display_name?.key_id ?? user.email?.key_id;
    return keyring.seal(Buffer.from(value), userField(user.id, field), personalKey);
  }

  /** @returns the stored hash when the password is right */
  async function checkPassword(user: UserState | undefined, password: string): Promise<string | undefined> {
    // An unknown name costs the same work, so that the time of an answer does not tell whether it exists.
    const stored = user === undefined ? undefined : ((await openField(user, 'password')) ?? undefined);
    const result = await hasher.verify(stored, password);
    if (result === 'busy') {
      throw new ServiceError('rate_limited', 'too many sign-ins at once; try again', {
        hints: { retryAfterSeconds: busyRetrySeconds },
      });
    }
    return result === 'match' ? stored : undefined;
  }

  /** Stores the password under today's hash parameters. The sign-in has succeeded and does not depend on it. */
  async function rehash(user: UserState, password: string): Promise<void> {
    const hashed = await hasher.hash(password);
    // Too many sign-ins at once: the next one tries again.
    if (hashed.kind === 'busy') return;
    const sealed = await keyring.seal(Buffer.from(hashed.phc), userField(user.id, 'password'));
    const command = { type: 'RehashUserPassword', id: user.id, password: sealed, replaces: user.password } as const;
    const outcome = await gateway.execute(command, systemContext('password rehash'), ({ users }) => users.get(user.id));
    const stored = outcome.kind === 'done' && outcome.result?.password.key_id === sealed.key_id;
    // Not stored when the password was changed meanwhile.
    await shredPassword(keyring, user, stored ? user.password.key_id : sealed.key_id);
  }

  return {
    async login(username, password, address, requestId) {
      const name = username.toLowerCase();
      const admission = await limiter.admit(address, name);
      if (admission.kind === 'refused') {
        const hints = { retryAfterSeconds: admission.retryAfterSeconds };
        throw new ServiceError('rate_limited', 'too many failed sign-ins; try again later', { hints });
      }
      let outcome: 'failed' | 'succeeded' | 'abandoned' = 'abandoned';
      try {
        if (admission.delayMs > 0) await sleep(admission.delayMs);
        let user = userByName(view.accounts, name);
        const account = { user_id: user?.id ?? null, username: user?.username ?? null, address };
        const actor = { type: 'user', id: user?.id ?? '', name: user?.username ?? '' } as const;
        let phc = await checkPassword(user, password);
        const newer = userByName(view.accounts, name);
        if (phc === undefined && newer?.password !== user?.password) {
          // The stored hash was replaced, and its key deleted, while it was read.
          user = newer;
          phc = await checkPassword(user, password);
        }
        if (phc === undefined || user === undefined) {
          outcome = 'failed';
          facts.signin({ type: 'SignInRefused', data: account }, actor, requestId);
          throw new ServiceError('unauthenticated', 'the user name or the password is wrong');
        }
        outcome = 'succeeded';
        facts.signin(
          { type: 'SignedIn', data: { user_id: user.id, username: user.username, address } },
          actor,
          requestId,
        );
        if (hasher.needsRehash(phc)) {
          rehash(user, password).catch((error: unknown) =>
            logger.warn(
              { error: errorText(error), user_id: user.id },
              'a password was not stored under a stronger hash',
            ),
          );
        }
        const issued = tokens.issue({ sub: user.id, role: user.role, ver: user.token_version });
        return { ...issued, user: await show(user) };
      } finally {
        admission.settle(outcome);
      }
    },
    authenticate(token) {
      const verified = tokens.verify(token);
      if (verified.kind !== 'valid') return undefined;
      const user = view.accounts.users.get(verified.claims.sub);
      if (user === undefined || user.token_version !== verified.claims.ver) return undefined;
      return { userId: user.id, username: user.username, role: user.role };
    },
    async me(userId) {
      const user = view.accounts.users.get(userId);
      if (user === undefined) throw new ServiceError('not_found', `there is no user ${userId}`);
      return show(user);
    },
    async updateMe(context, userId, ifMatch, fields) {
      const user = view.accounts.users.get(userId);
      if (user === undefined) throw new ServiceError('not_found', `there is no user ${userId}`);
      const display_name = await sealField(user, 'display_name', fields.display_name);
      // Both fields share one key: when the first is sealed just now, the second uses its key.
      const withKey = display_name === undefined || display_name === null ? user : { ...user, display_name };
      const email = await sealField(withKey, 'email', fields.email);
      const command = { type: 'UpdateUserProfile', id: userId, ifMatch, display_name, email } as const;
      const outcome = await gateway.execute(command, context, (accounts) => accounts.users.get(userId) ?? user);
      return outcome.kind === 'done' ? { ...outcome, result: await show(outcome.result) } : outcome;
    },
  };
}

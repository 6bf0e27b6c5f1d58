/**
 * The handlers of accounts for REST: sign-in, the caller's own account, users as admins see them, and reverts of
 * profiles. Users are listed from memory, where every instance holds them to check tokens. Implements
 * `docs/contract/rest.md#authentication-and-roles` and `docs/contract/domain.md#audit-and-revert`.
 */
import type { AccountsHandlers } from '../commands/accounts-port.js';
import type { RevertHandlers } from '../commands/handlers-port.js';
import { createUserFields } from './fields.js';
import { apiTokenHandlers } from './api-tokens.js';
import { pageOf } from './page.js';
import { endEverywhere, type AccountHandlerOptions, type AccountParts } from './parts.js';
import { createPasswordCheck } from './password-check.js';
import { signInHandlers, subjectOf } from './sign-in.js';
import type { UserState } from '../domain/accounts/user.js';
import { type AccountCommand, accountEvent, accountEvents, userType } from '../domain/accounts/declaration.js';
import { versionMismatch, type IfMatch } from '../domain/resource/refusal.js';
import { ServiceError, errorText } from '../kernel/errors.js';
import { lastEvent, type RecordedCommand } from '../kernel/event.js';
import type { CommandContext, Done, Gateway, ProjectionWait } from '../commands/port.js';
import { present } from '../commands/resources.js';
import { auditHolds, type AuditTrail } from '../commands/revert.js';
import { decideAccounts, type Accounts } from '../domain/accounts/accounts.js';
import { changedFields } from '../domain/accounts/revert.js';

export function createAccountHandlers(options: AccountHandlerOptions): AccountsHandlers {
  const fields = createUserFields(options.keyring);
  const parts: AccountParts = { ...options, fields, passwords: createPasswordCheck({ ...options, fields }) };
  return {
    ...signInHandlers(parts),
    ...ownAccountHandlers(parts),
    ...userHandlers(parts),
    apiTokens: apiTokenHandlers(parts),
  };
}

/** @throws ServiceError `not_found` */
function knownUser(user: UserState | undefined, id: string): UserState {
  if (user === undefined) throw new ServiceError('not_found', `there is no user ${id}`);
  return user;
}

/** The user whose password is to change. The command checks again; checking here saves the hash before a 404 or 412. */
function userToChange({ view }: AccountParts, id: string, ifMatch: IfMatch): UserState {
  const user = knownUser(view.accounts.users.get(id), id);
  const mismatch = versionMismatch(user.version, ifMatch);
  if (mismatch !== undefined) throw new ServiceError(mismatch.code, mismatch.message);
  return user;
}

/** Stores a password, which ends all older tokens of its user. @param before runs once the password is hashed */
async function storePassword(
  parts: AccountParts,
  context: CommandContext,
  {
    password,
    ...change
  }: Omit<Extract<AccountCommand, { readonly type: 'ChangeUserPassword' }>, 'type' | 'password'> & {
    readonly password: string;
  },
  before: () => Promise<void> = async () => undefined,
): Promise<Done<UserState>> {
  const { gateway, fields, passwords } = parts;
  const { id } = change;
  const sealed = fields.sealPassword(id, await passwords.hash(password));
  await before();
  const command = { type: 'ChangeUserPassword', ...change, password: sealed } as const;
  const outcome = await gateway.execute(command, context, ({ users }) => knownUser(users.get(id), id));
  if (outcome.kind !== 'done') throw new Error('a PUT has no idempotency key');
  await endEverywhere(parts, outcome.events, 'the older tokens of a user', { user_id: id });
  return outcome;
}

type OwnAccount = Pick<AccountsHandlers, 'me' | 'updateMe' | 'changePassword' | 'signOut'>;

function ownAccountHandlers(parts: AccountParts): OwnAccount {
  const { gateway, view, tokens, fields, passwords } = parts;

  const stored = (id: string): UserState => knownUser(view.accounts.users.get(id), id);

  return {
    me: (userId) => fields.show(stored(userId)),
    async updateMe(context, userId, ifMatch, changes) {
      const profile = fields.sealProfile(stored(userId), changes);
      const command = { type: 'UpdateUserProfile', id: userId, ifMatch, ...profile } as const;
      const outcome = await gateway.execute(command, context, ({ users }) => knownUser(users.get(userId), userId));
      return outcome.kind === 'done' ? { ...outcome, result: fields.show(outcome.result) } : outcome;
    },
    async changePassword(context, userId, ifMatch, address, given) {
      const user = userToChange(parts, userId, ifMatch);
      const known = await passwords.check({
        address,
        name: user.username,
        password: given.current_password,
        find: () => view.accounts.users.get(userId),
      });
      if (known === undefined) {
        throw new ServiceError('invalid_request', 'current_password: expected the password of this account');
      }
      const change = {
        id: userId,
        ifMatch,
        password: given.new_password,
        replaces: known.user.password,
        endsApiTokens: given.revoke_tokens ?? false,
      };
      const outcome = await storePassword(parts, context, change);
      return { ...outcome, result: tokens.issue(subjectOf(outcome.result)) };
    },
    async signOut(context, { userId, tokenId }) {
      const outcome = await gateway.execute({ type: 'SignOut', id: userId, tokenId }, context, () => undefined);
      if (outcome.kind === 'done') {
        await endEverywhere(parts, outcome.events, 'a token that was signed out', { user_id: userId });
      }
      return outcome;
    },
  };
}

type Users = Pick<AccountsHandlers, 'users' | 'user' | 'createUser' | 'resetPassword'>;

function userHandlers(parts: AccountParts): Users {
  const { gateway, view, ids, blindBodyHash, fields, passwords } = parts;

  return {
    async users(query) {
      const { items, ...rest } = pageOf(view.accounts.users.values(), query, ({ username }) => username);
      return { items: items.map((user) => fields.show(user)), ...rest };
    },
    async user(id) {
      const user = view.accounts.users.get(id);
      return user === undefined ? undefined : fields.show(user);
    },
    async createUser(context, { username, password, role, ...given }) {
      const id = ids.next();
      const phc = await passwords.hash(password);
      const profile = fields.sealProfile({ id, display_name: null, email: null }, given);
      const sealed = fields.sealPassword(id, phc);
      const command: AccountCommand = {
        type: 'CreateUser',
        id,
        username,
        role,
        display_name: profile.display_name ?? null,
        email: profile.email ?? null,
        password: sealed,
        onlyIfFirst: false,
      };
      const outcome = await gateway.execute(command, blinded(context), ({ users }) => present(users.get(id)));
      return outcome.kind === 'done' ? { ...outcome, result: fields.show(outcome.result) } : outcome;
    },
    async resetPassword(context, id, ifMatch, password) {
      userToChange(parts, id, ifMatch);
      let joinTokensDeleted = 0;
      const change = { id, ifMatch, password, replaces: null, endsApiTokens: true };
      const outcome = await storePassword(parts, context, change, async () => {
        joinTokensDeleted = await parts.deleteJoinTokens(context, id);
      });
      // Deletes those that were made before the password changed.
      joinTokensDeleted += await parts.deleteJoinTokens(context, id).catch((error: unknown) => {
        parts.logger.warn({ user_id: id, error: errorText(error) }, 'join tokens of a user were perhaps not deleted');
        return 0;
      });
      return { ...outcome, result: { user: fields.show(outcome.result), joinTokensDeleted } };
    },
  };

  /** Readers of the log could guess the body's password from a plain hash much faster than against Argon2id. */
  function blinded(context: CommandContext): CommandContext {
    const { idempotency } = context;
    if (idempotency === undefined) return context;
    return { ...context, idempotency: { ...idempotency, body_hash: blindBodyHash(idempotency.body_hash) } };
  }
}

export interface ProfileRevertOptions {
  readonly gateway: Gateway<Accounts, AccountCommand>;
  readonly projections: ProjectionWait;
  readonly audit: AuditTrail;
}

export function createProfileRevertHandlers({ gateway, projections, audit }: ProfileRevertOptions): RevertHandlers {
  const subjectOf = ({ events: [first] }: RecordedCommand): string => accountEvent(first).data.user_id;

  /** For each field that the entry set, the newest later edit. */
  async function changedBy(entry: RecordedCommand): Promise<ReadonlyMap<string, string>> {
    const event = accountEvent(entry.events[0]);
    if (event.type !== 'UserProfileUpdated') return new Map();
    const { user_id, changes } = event.data;
    const seen = await gateway.read(({ users, position }) => {
      const user = users.get(user_id);
      return { fields: user === undefined ? [] : changedFields(user, changes), position: position.value };
    });
    await auditHolds(projections, seen.position);
    const found = new Map<string, string>();
    if (seen.fields.length === 0) return found;
    for await (const { id } of audit.about(userType, user_id, lastEvent(entry).position)) {
      const command = await audit.command(id);
      const later = command === undefined ? undefined : accountEvent(command.events[0]);
      if (later?.type !== 'UserProfileUpdated') continue;
      for (const field of seen.fields) if (later.data.changes[field] && !found.has(field)) found.set(field, id);
      if (found.size === seen.fields.length) break;
    }
    return found;
  }

  const commandOf = async (entry: RecordedCommand): Promise<AccountCommand> => ({
    type: 'RevertUserProfile',
    entry,
    changedBy: await changedBy(entry),
  });

  return {
    async revert(context, entry) {
      const reverting = { ...context, revertOf: entry.events[0].metadata.command.id };
      return gateway.execute(await commandOf(entry), reverting, ({ users }) => ({
        name: users.get(subjectOf(entry))?.username ?? null,
      }));
    },
    async preview(entry) {
      const command = await commandOf(entry);
      return gateway.read((accounts) => {
        const decision = decideAccounts(accounts, command);
        if (!decision.ok) throw new ServiceError(decision.error.code, decision.error.message);
        const id = subjectOf(entry);
        const resource = { type: userType, id, name: accounts.users.get(id)?.username ?? null };
        return decision.value.flatMap((event) =>
          event.type === 'UserProfileUpdated'
            ? accountEvents.UserProfileUpdated.audit(event).changes.map((change) => ({ resource, ...change }))
            : [],
        );
      });
    },
  };
}

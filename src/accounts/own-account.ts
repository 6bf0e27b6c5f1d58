/** The caller's own account: profile and password. Implements `docs/contract/rest.md#authentication-and-roles`. */
import type { CommandHandlers } from '../commands/handlers-port.js';
import type { UserState } from '../domain/accounts/user.js';
import { versionMismatch } from '../domain/resource/refusal.js';
import { ServiceError } from '../kernel/errors.js';
import type { RecordedEvent } from '../kernel/event.js';
import { limits } from '../kernel/limits.js';
import type { AccountParts } from './parts.js';
import { subjectOf } from './sign-in.js';

type OwnAccount = Pick<CommandHandlers['accounts'], 'me' | 'updateMe' | 'changePassword'>;

export function ownAccountHandlers(parts: AccountParts): OwnAccount {
  const { gateway, view, tokens, tokensEnded, logger, fields, passwords } = parts;

  /** @throws ServiceError `not_found` */
  function present(user: UserState | undefined, id: string): UserState {
    if (user === undefined) throw new ServiceError('not_found', `there is no user ${id}`);
    return user;
  }
  const stored = (id: string): UserState => present(view.accounts.users.get(id), id);

  /** The other instances read the log themselves, usually within milliseconds: this waits so that none is behind. */
  async function endEverywhere(events: readonly RecordedEvent[], userId: string): Promise<void> {
    const revision = events.at(-1)?.revision;
    if (revision === undefined || (await tokensEnded(revision, limits.rest.projectionWaitMs))) return;
    logger.warn({ user_id: userId }, 'not every instance has said in time that it refuses the older tokens of a user');
  }

  return {
    me: (userId) => fields.show(stored(userId)),
    async updateMe(context, userId, ifMatch, changes) {
      const profile = fields.sealProfile(stored(userId), changes);
      const command = { type: 'UpdateUserProfile', id: userId, ifMatch, ...profile } as const;
      const outcome = await gateway.execute(command, context, ({ users }) => present(users.get(userId), userId));
      return outcome.kind === 'done' ? { ...outcome, result: fields.show(outcome.result) } : outcome;
    },
    async changePassword(context, userId, ifMatch, address, given) {
      const user = stored(userId);
      // Decided again with the command; here, so that a 412 costs no hash and no failure.
      const mismatch = versionMismatch(user.version, ifMatch);
      if (mismatch !== undefined) throw new ServiceError(mismatch.code, mismatch.message);
      const known = await passwords.check({
        address,
        name: user.username,
        password: given.current_password,
        find: () => view.accounts.users.get(userId),
      });
      if (known === undefined) {
        throw new ServiceError('invalid_request', 'current_password: expected the password of this account');
      }
      const sealed = fields.sealPassword(userId, await passwords.hash(given.new_password));
      const replaces = known.user.password;
      const command = { type: 'ChangeUserPassword', id: userId, ifMatch, password: sealed, replaces } as const;
      const outcome = await gateway.execute(command, context, ({ users }) => present(users.get(userId), userId));
      if (outcome.kind !== 'done') throw new Error('a PUT has no idempotency key');
      await endEverywhere(outcome.events, userId);
      return { ...outcome, result: tokens.issue(subjectOf(outcome.result)) };
    },
  };
}

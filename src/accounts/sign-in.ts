/**
 * Sign-in, and authentication by token. Each sign-in is recorded as a fact, without the typed text. Implements
 * `docs/contract/rest.md#authentication-and-roles`.
 */
import { logsWarning } from '../kernel/logger.js';
import type { AccountsHandlers, Caller } from '../commands/accounts-port.js';
import { systemContext } from '../commands/system.js';
import { userByName } from '../domain/accounts/accounts.js';
import type { UserState } from '../domain/accounts/user.js';
import { ServiceError } from '../kernel/errors.js';
import { limits } from '../kernel/limits.js';
import { isApiToken } from '../security/api-token.js';
import type { TokenSubject } from '../security/tokens.js';
import { apiTokenAuthentication } from './api-tokens.js';
import type { AccountParts } from './parts.js';

/** The subject of the user's token. */
export function subjectOf(user: UserState): TokenSubject {
  return { sub: user.id, role: user.role, ver: user.token_version };
}

export function signInHandlers(parts: AccountParts): Pick<AccountsHandlers, 'login' | 'authenticate'> {
  const { gateway, view, hasher, tokens, facts, logger, fields, passwords } = parts;
  const { users, endedTokens } = view.accounts;
  const byApiToken = apiTokenAuthentication(parts);

  /** Stores the password under the current hash parameters. The sign-in has succeeded and does not depend on it. */
  async function rehash(user: UserState, password: string): Promise<void> {
    const hashed = await hasher.hash(password);
    // Too many sign-ins at once: the next one will try again.
    if (hashed.kind === 'busy') return;
    const sealed = fields.sealPassword(user.id, hashed.phc);
    const command = { type: 'RehashUserPassword', id: user.id, password: sealed, replaces: user.password } as const;
    await gateway.execute(command, systemContext('password rehash'), () => undefined);
  }

  return {
    async login(username, password, address, requestId) {
      const name = username.toLowerCase();
      const find = (): UserState | undefined => userByName(view.accounts, name);
      const known = await passwords.check({ address, name, password, find });
      if (known === undefined) {
        const account = find();
        const [user_id, shown] = [account?.id ?? null, account?.username ?? null];
        const actor = { type: 'user', id: user_id ?? '', name: shown ?? '' } as const;
        facts.signin({ type: 'SignInRefused', data: { user_id, username: shown, address } }, actor, requestId);
        throw new ServiceError('unauthenticated', 'the user name or the password is wrong');
      }
      const { user, phc } = known;
      const actor = { type: 'user', id: user.id, name: user.username } as const;
      facts.signin(
        { type: 'SignedIn', data: { user_id: user.id, username: user.username, address } },
        actor,
        requestId,
      );
      if (hasher.needsRehash(phc)) {
        rehash(user, password).catch(
          logsWarning(logger, 'a password was not stored under a stronger hash', { user_id: user.id }),
        );
      }
      return { ...tokens.issue(subjectOf(user)), user: fields.show(user) };
    },
    authenticate(token, address) {
      if (isApiToken(token)) return byApiToken(token, address);
      const caller = (): Caller | undefined => {
        const claims = tokens.verify(token);
        if (claims === undefined) return undefined;
        const { sub, ver, jti } = claims;
        const user = users.get(sub);
        if (user === undefined || user.token_version !== ver || endedTokens.has(jti)) return undefined;
        const { id: userId, username, role } = user;
        return { userId, username, role, tokenId: jti, apiToken: null, ended: () => caller() === undefined };
      };
      // The service has signed it, either under an earlier password or under one that this instance has not read yet.
      return caller() ?? (tokens.verify(token) && view.readToEnd(limits.rest.projectionWaitMs).then(caller));
    },
  };
}

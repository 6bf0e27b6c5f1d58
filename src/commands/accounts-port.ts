/** Port: what REST calls for sign-ins, users and tokens. Types only. Implements `docs/contract/rest.md#authentication-and-roles`. */
import type { ApiTokenState } from '../domain/accounts/api-token.js';
import type { Role } from '../domain/accounts/user.js';
import type { ResourceMeta } from '../domain/resource/meta.js';
import type { ListOf, ListQuery } from '../kernel/list.js';
import type { IfMatch } from '../domain/resource/refusal.js';
import type { TokenMark } from '../kernel/event.js';
import type { Answer, CommandContext, Done } from './port.js';

/** An account as answers show it: without password, personal data in clear. */
export interface UserView extends Omit<ResourceMeta, 'managed_by'> {
  readonly username: string;
  readonly display_name: string | null;
  readonly email: string | null;
  readonly role: Role;
}

/** The user that a token authenticates, with the rights of the token. */
export interface Caller {
  readonly userId: string;
  readonly username: string;
  readonly role: Role;
  /** The claim `jti`, which a sign-out ends; of an API token, its id. */
  readonly tokenId: string;
  /** The API token of a program; null for people. */
  readonly apiToken: TokenMark | null;
  /** Whether the token has expired or was ended. */
  ended(): boolean;
}

/** A token that was just signed. */
export interface NewToken {
  readonly token: string;
  /** Seconds. */
  readonly expiresIn: number;
}

export interface Login extends NewToken {
  readonly user: UserView;
}

export interface UpdateMeFields {
  readonly display_name?: string | null | undefined;
  readonly email?: string | null | undefined;
}

export interface ChangePasswordFields {
  readonly current_password: string;
  readonly new_password: string;
  /** Ends the API tokens too. */
  readonly revoke_tokens?: boolean | undefined;
}

export interface CreateUserFields extends UpdateMeFields {
  /** Lower-cased. */
  readonly username: string;
  readonly password: string;
  readonly role: Role;
}

export interface ApiTokenListQuery extends ListQuery {
  /** Only those of this user. */
  readonly userId?: string | undefined;
}

/** An API token as answers show it. */
export interface ApiTokenView extends Omit<ApiTokenState, 'token_sha256'> {
  readonly expired: boolean;
  /** RFC 3339, to the minute. */
  readonly last_used_at: string | null;
  readonly last_used_from: string | null;
}

export type NewApiTokenFields = Pick<ApiTokenState, 'name' | 'role' | 'from'> & {
  /** Null: it never expires. */
  readonly expires_in_days: number | null;
};

export interface AccountsHandlers {
  /**
   * @param address the caller's IP in canonical form
   * @throws ServiceError `unauthenticated`, or `rate_limited` with `retryAfterSeconds`
   */
  login(username: string, password: string, address: string, requestId: string): Promise<Login>;
  /**
   * Checks an access token (signature, expiry, token version, sign-out) or an API token.
   * @param address the caller's IP in canonical form
   * @returns undefined for a token that authenticates nobody
   * @throws ServiceError `rate_limited` for an unknown API token, when there were too many from the address
   */
  authenticate(token: string, address: string): Caller | undefined | Promise<Caller | undefined>;
  /** @throws ServiceError `not_found` when the user is gone */
  me(userId: string): UserView | Promise<UserView>;
  updateMe(ctx: CommandContext, userId: string, ifMatch: IfMatch, fields: UpdateMeFields): Answer<UserView>;
  /**
   * Ends every older token of the user. @returns a fresh one
   * @param address the caller's IP in canonical form, for the budget that sign-ins have
   * @throws ServiceError `invalid_request` for a wrong current password, `rate_limited` with `retryAfterSeconds`
   */
  changePassword(
    ctx: CommandContext,
    userId: string,
    ifMatch: IfMatch,
    address: string,
    fields: ChangePasswordFields,
  ): Promise<Done<NewToken>>;
  /** Ends the caller's token on every instance that answers in time. */
  signOut(ctx: CommandContext, caller: Caller): Answer<void>;
  /**
   * Deletes the join tokens that the user has made, then ends every token of the user.
   * @throws ServiceError `rate_limited` with `retryAfterSeconds`
   */
  resetPassword(
    ctx: CommandContext,
    id: string,
    ifMatch: IfMatch,
    password: string,
  ): Promise<Done<{ readonly user: UserView; readonly joinTokensDeleted: number }>>;
  users(query: ListQuery): Promise<ListOf<UserView>>;
  user(id: string): Promise<UserView | undefined>;
  /** @throws ServiceError `rate_limited` with `retryAfterSeconds` */
  createUser(ctx: CommandContext, fields: CreateUserFields): Answer<UserView>;
  /** Callers see and delete only their own tokens, admins all; any other token is `not_found`. */
  readonly apiTokens: {
    list(caller: Caller, query: ApiTokenListQuery): Promise<ListOf<ApiTokenView>>;
    get(caller: Caller, id: string): Promise<ApiTokenView | undefined>;
    /** @throws ServiceError `forbidden` for a role above the caller's, `conflict` for a taken name or one too many */
    create(
      ctx: CommandContext,
      caller: Caller,
      fields: NewApiTokenFields,
    ): Answer<{ readonly apiToken: ApiTokenView; readonly token: string }>;
    /** Once it returns, every live instance that answers in time refuses the token. */
    remove(ctx: CommandContext, caller: Caller, id: string, ifMatch: IfMatch): Answer<void>;
  };
}

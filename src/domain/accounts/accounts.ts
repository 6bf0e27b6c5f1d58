/**
 * The accounts of one installation: fold and decisions of the stream `svc-accounts`.
 * Implements `docs/contract/rest.md#authentication-and-roles`.
 */
import { lastEvent, type RecordedCommand, type RecordedEvent } from '../../kernel/event.js';
import { unreachable } from '../../kernel/errors.js';
import { jsonEqual } from '../../kernel/json.js';
import { err, ok, type Result } from '../../kernel/result.js';
import { changesOf, withChanges, type Changes } from '../resource/change.js';
import { versionMismatch, refuse, type Decision, type IfMatch, type Refusal } from '../resource/refusal.js';
import { createIdempotencyTable, rememberKey, type IdempotencyTable } from '../aggregate/idempotency.js';
import { rememberRevert, type RevertTable } from '../aggregate/reverts.js';
import { createCell, createIndex, createTable, type Cell, type Table } from '../aggregate/containers.js';
import { namesHeads } from '../log-chain/heads.js';
import { emptyChain, type ChainHead } from '../log-chain/links.js';
import {
  applyApiToken,
  decideApiToken,
  endApiToken,
  rememberEnded,
  type ApiTokenEvent,
  type ApiTokens,
} from './api-token.js';
import { accountEvent, accountSubject, personalFields, type AccountCommand, type AccountEvent } from './declaration.js';
import { decideProfileRevert } from './revert.js';
import type { ProfileChanges, UserState } from './user.js';
import { firstVersion, nextVersion } from '../resource/meta.js';

export interface Accounts {
  readonly revision: Cell<number>;
  readonly position: Cell<number>;
  /** The head of the log chain. The fold of the log's commands checks it and advances it. */
  readonly logChain: Cell<ChainHead>;
  readonly users: Table<UserState>;
  /** User name → id. */
  readonly names: Table<string>;
  /** The ids of tokens that were signed out, oldest first, `limits.accounts.endedTokens` at most. */
  readonly endedTokens: Table<true>;
  readonly apiTokens: ApiTokens;
  readonly idempotency: IdempotencyTable;
  readonly reverts: RevertTable;
}

export function emptyAccounts(): Accounts {
  return {
    revision: createCell(-1),
    position: createCell(0),
    logChain: createCell(emptyChain),
    users: createTable(),
    names: createTable(),
    endedTokens: createTable(),
    apiTokens: { byId: createTable(), hashes: createTable(), ofUser: createIndex(), gone: createTable() },
    idempotency: createIdempotencyTable(),
    reverts: createTable(),
  };
}

/** The user with a name. Names are stored lower-cased. */
export function userByName(accounts: Accounts, username: string): UserState | undefined {
  const id = accounts.names.get(username.toLowerCase());
  return id === undefined ? undefined : accounts.users.get(id);
}

/**
 * Applies one command, which `log/upcast.ts` has read.
 * @returns the ignored events: they create a user who exists or whose name is taken, which this service never writes
 */
export function applyAccounts(accounts: Accounts, command: RecordedCommand): readonly RecordedEvent[] {
  const ignored: RecordedEvent[] = [];
  const last = lastEvent(command);
  accounts.revision.set(last.revision);
  accounts.position.set(last.position);
  if (namesHeads(command)) return ignored;
  for (const recorded of command.events) {
    const event = accountEvent(recorded);
    const id = event.data.user_id;
    if (event.type === 'SignedOut') {
      rememberEnded(accounts.endedTokens, event.data.token_id);
      continue;
    }
    if (event.type === 'ApiTokenCreated' || event.type === 'ApiTokenDeleted') {
      applyApiToken(accounts.apiTokens, event, recorded);
      continue;
    }
    if (event.type === 'UserPasswordChanged') {
      for (const ended of event.data.ended_api_tokens ?? []) endApiToken(accounts.apiTokens, ended);
    }
    if (event.type === 'UserCreated' && (accounts.users.has(id) || accounts.names.has(event.data.username))) {
      ignored.push(recorded);
      continue;
    }
    const user = evolveUser(accounts.users.get(id), event, recorded);
    if (user === undefined) continue;
    accounts.users.set(id, user);
    accounts.names.set(user.username, id);
  }
  rememberKey(accounts.idempotency, command.events[0], accountSubject(accountEvent(command.events[0])).id);
  rememberRevert(accounts.reverts, command);
  return ignored;
}

/** The user that a command addresses, at the version that it expects. */
function addressedUser(
  { users }: Accounts,
  { id, ifMatch }: { readonly id: string; readonly ifMatch?: IfMatch },
): Result<UserState, Refusal> {
  const user = users.get(id);
  if (user === undefined) return refuse('not_found', `there is no user ${id}`);
  const mismatch = versionMismatch(user.version, ifMatch);
  return mismatch === undefined ? ok(user) : err(mismatch);
}

/** The events of a command, none if nothing changes, or a refusal. */
export function decideAccounts(accounts: Accounts, command: AccountCommand): Decision<AccountEvent> {
  switch (command.type) {
    case 'CreateUser': {
      const { id, username, role, display_name, email, password } = command;
      if (command.onlyIfFirst && accounts.users.size > 0) return ok([]);
      if (accounts.names.has(username)) {
        return refuse('conflict', `username: "${username}" is taken; expected a unique user name`);
      }
      return ok([{ type: 'UserCreated', data: { user_id: id, username, role, display_name, email, password } }]);
    }
    case 'UpdateUserProfile': {
      const user = addressedUser(accounts, command);
      if (!user.ok) return user;
      const { display_name, email } = command;
      const changes = changesOf<UserState>(user.value, { display_name, email }, personalFields) as ProfileChanges;
      if (Object.keys(changes).length === 0) return ok([]);
      return ok([{ type: 'UserProfileUpdated', data: { user_id: command.id, changes } }]);
    }
    case 'RevertUserProfile':
      return decideProfileRevert(accounts, command);
    case 'ChangeUserPassword': {
      const { id, password, replaces } = command;
      const user = addressedUser(accounts, command);
      if (!user.ok) return user;
      if (replaces !== null && !jsonEqual(user.value.password, replaces)) {
        return refuse(
          'invalid_request',
          'current_password: it was replaced at the same moment; expected the newest one',
        );
      }
      const ended = command.endsApiTokens === true ? [...accounts.apiTokens.ofUser.get(id)] : [];
      const tokens = ended.length === 0 ? {} : { ended_api_tokens: ended };
      return ok([{ type: 'UserPasswordChanged', data: { user_id: id, password, ...tokens } }]);
    }
    case 'RehashUserPassword': {
      const { id, password, replaces } = command;
      if (!jsonEqual(accounts.users.get(id)?.password ?? null, replaces)) return ok([]);
      return ok([{ type: 'UserPasswordChanged', data: { user_id: id, password, rehashed: true } }]);
    }
    case 'SignOut': {
      const { id: user_id, tokenId: token_id } = command;
      const user = addressedUser(accounts, { id: user_id });
      if (!user.ok) return user;
      if (accounts.endedTokens.has(token_id)) return ok([]);
      return ok([{ type: 'SignedOut', data: { user_id, username: user.value.username, token_id } }]);
    }
    case 'CreateApiToken':
      return decideApiToken(accounts.apiTokens, accounts.users.get(command.token.user_id), command);
    case 'DeleteApiToken':
      return decideApiToken(accounts.apiTokens, undefined, command);
    default:
      return unreachable(command);
  }
}

/**
 * The user after one event. Ignores events for a user that does not exist, and the creation of one that does, which would
 * restore the first password and its tokens.
 */
function evolveUser(
  state: UserState | undefined,
  event: Exclude<AccountEvent, ApiTokenEvent | { readonly type: 'SignedOut' }>,
  { id: eventId, metadata: { occurred_at: at } }: RecordedEvent,
): UserState | undefined {
  if (event.type === 'UserCreated') {
    if (state !== undefined) return state;
    const { user_id, ...fields } = event.data;
    return { ...fields, ...firstVersion(user_id, at), token_version: eventId };
  }
  if (state === undefined) return undefined;
  switch (event.type) {
    case 'UserProfileUpdated':
      return nextVersion(withChanges(state, event.data.changes as Changes), at);
    case 'UserPasswordChanged': {
      const { password, rehashed } = event.data;
      return nextVersion({ ...state, password, token_version: rehashed ? state.token_version : eventId }, at);
    }
    default:
      return unreachable(event);
  }
}

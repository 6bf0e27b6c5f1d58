/**
 * The accounts of one installation: fold and decisions of the stream `svc-accounts`.
 * Implements `docs/contract/rest.md#authentication-and-roles`.
 */
import type { RecordedCommand, RecordedEvent } from '../../kernel/event.js';
import { lastEvent } from '../../kernel/event.js';
import { unreachable } from '../../kernel/errors.js';
import { jsonEqual } from '../../kernel/json.js';
import { ok } from '../../kernel/result.js';
import { versionMismatch, refuse } from '../resource/refusal.js';
import type { IdempotencyTable } from '../aggregate/idempotency.js';
import { createIdempotencyTable, rememberKey } from '../aggregate/idempotency.js';
import type { RevertTable } from '../aggregate/reverts.js';
import { rememberRevert } from '../aggregate/reverts.js';
import type { Cell, Table } from '../aggregate/containers.js';
import { namesHeads } from '../log-chain/heads.js';
import type { ChainHead } from '../log-chain/links.js';
import { emptyChain } from '../log-chain/links.js';
import { createCell, createIndex, createTable } from '../aggregate/containers.js';
import type { Decision } from '../resource/refusal.js';
import type { ApiTokenEvent, ApiTokens } from './api-token.js';
import { applyApiToken, decideApiToken, endApiToken, rememberEnded } from './api-token.js';
import { accountEvent, accountSubject } from './declaration.js';
import { decideProfileRevert } from './revert.js';
import type { AccountCommand, AccountEvent, UserState } from './user.js';
import { firstVersion, nextVersion } from '../resource/meta.js';

export interface Accounts {
  readonly revision: Cell<number>;
  readonly position: Cell<number>;
  /** The head of the log chain. The fold of the log's commands checks it and moves it on. */
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
 * @returns the events that create a user who exists or whose name is taken. They change nothing; this service never
 * writes such an event
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

/** The events of a command, or why it is refused. No events: accepted, and nothing changes. */
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
      const user = accounts.users.get(command.id);
      if (user === undefined) return refuse('not_found', `there is no user ${command.id}`);
      const mismatch = versionMismatch(user.version, command.ifMatch);
      if (mismatch !== undefined) return { ok: false, error: mismatch };
      const { display_name, email } = command;
      const changes = {
        ...(display_name === undefined || jsonEqual(display_name, user.display_name)
          ? {}
          : { display_name: { from: user.display_name, to: display_name } }),
        ...(email === undefined || jsonEqual(email, user.email) ? {} : { email: { from: user.email, to: email } }),
      };
      if (Object.keys(changes).length === 0) return ok([]);
      return ok([{ type: 'UserProfileUpdated', data: { user_id: user.id, changes } }]);
    }
    case 'RevertUserProfile':
      return decideProfileRevert(accounts, command);
    case 'ChangeUserPassword': {
      const { id, ifMatch, password, replaces } = command;
      const user = accounts.users.get(id);
      if (user === undefined) return refuse('not_found', `there is no user ${id}`);
      const mismatch = versionMismatch(user.version, ifMatch);
      if (mismatch !== undefined) return { ok: false, error: mismatch };
      if (replaces !== null && !jsonEqual(user.password, replaces)) {
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
      const { id, tokenId } = command;
      const user = accounts.users.get(id);
      if (user === undefined) return refuse('not_found', `there is no user ${id}`);
      if (accounts.endedTokens.has(tokenId)) return ok([]);
      return ok([{ type: 'SignedOut', data: { user_id: id, username: user.username, token_id: tokenId } }]);
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
 * The user after one event. Ignores an event for a user that does not exist, and the creation of one that does: replayed,
 * it would bring back the first password and its tokens.
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
    case 'UserProfileUpdated': {
      const { display_name, email } = event.data.changes;
      const next = {
        ...state,
        display_name: display_name === undefined ? state.display_name : display_name.to,
        email: email === undefined ? state.email : email.to,
      };
      return nextVersion(next, at);
    }
    case 'UserPasswordChanged': {
      const { password, rehashed } = event.data;
      return nextVersion({ ...state, password, token_version: rehashed ? state.token_version : eventId }, at);
    }
    default:
      return unreachable(event);
  }
}

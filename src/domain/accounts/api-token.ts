/**
 * An API token: the sign-in of a program, with at most the rights of its user. State, events and decisions. The log and the
 * fold hold only the hash of its text. Implements `docs/contract/automation.md#api-tokens`.
 */
import { unreachable } from '../../kernel/errors.js';
import type { RecordedEvent } from '../../kernel/event.js';
import { limits } from '../../kernel/limits.js';
import { ok } from '../../kernel/result.js';
import type { Index, Table } from '../aggregate/containers.js';
import { firstVersion, nameKey, type ResourceMeta } from '../resource/meta.js';
import { faultOfName } from '../resource/name.js';
import { refuse, versionMismatch, type Decision, type IfMatch } from '../resource/refusal.js';
import type { Role, UserState } from './user.js';

interface ApiTokenDefinition {
  readonly name: string;
  /** At most the role of its user. */
  readonly role: Role;
  /** Addresses and CIDRs, canonical; empty: from anywhere. */
  readonly from: readonly string[];
  /** RFC 3339, UTC, milliseconds; null: never. */
  readonly expires_at: string | null;
}

export interface ApiTokenState extends ResourceMeta, ApiTokenDefinition {
  readonly user_id: string;
  /** The first characters of the token, to recognise it by. */
  readonly prefix: string;
  /** SHA-256 of the token, hexadecimal. */
  readonly token_sha256: string;
}

interface OwnedToken {
  readonly user_id: string;
  readonly api_token_id: string;
}

export type ApiTokenEvent =
  | {
      readonly type: 'ApiTokenCreated';
      readonly data: OwnedToken & ApiTokenDefinition & Pick<ApiTokenState, 'prefix' | 'token_sha256'>;
    }
  | { readonly type: 'ApiTokenDeleted'; readonly data: OwnedToken & ApiTokenDefinition };

export type ApiTokenCommand =
  | {
      readonly type: 'CreateApiToken';
      readonly token: Omit<ApiTokenState, keyof ResourceMeta> & Pick<ApiTokenState, 'id'>;
      /** The time, in milliseconds since the epoch. */
      readonly now: number;
    }
  | { readonly type: 'DeleteApiToken'; readonly id: string; readonly ifMatch: IfMatch };

export interface ApiTokens {
  /** Tokens that were not deleted; expired ones for a while. */
  readonly byId: Table<ApiTokenState>;
  /** SHA-256 of the token → its id. */
  readonly hashes: Table<string>;
  /** User id → token ids. */
  readonly ofUser: Index;
  /** Hashes of deleted tokens, oldest first, to tell them from a guess. */
  readonly gone: Table<true>;
}

/** Whether the token has expired. @param now in milliseconds since the epoch */
export function hasExpired({ expires_at }: Pick<ApiTokenState, 'expires_at'>, now: number): boolean {
  return expires_at !== null && Date.parse(expires_at) <= now;
}

/** Whether the token expired so long ago that no list shows it. @param now in milliseconds since the epoch */
export function isForgotten(token: Pick<ApiTokenState, 'expires_at'>, now: number): boolean {
  return hasExpired(token, now - limits.accounts.apiTokens.expiredListedMs);
}

/** The tokens of a user. */
export function tokensOf({ byId, ofUser }: ApiTokens, userId: string): readonly ApiTokenState[] {
  return [...ofUser.get(userId)].flatMap((id) => byId.get(id) ?? []);
}

export function decideApiToken(
  tokens: ApiTokens,
  user: Pick<UserState, 'id'> | undefined,
  command: ApiTokenCommand,
): Decision<ApiTokenEvent> {
  switch (command.type) {
    case 'CreateApiToken': {
      const { id, ...token } = command.token;
      if (user === undefined) return refuse('not_found', `there is no user ${token.user_id}`);
      const fault = faultOfName(token.name);
      if (fault !== undefined) return refuse('invalid_request', `name: ${fault}`);
      const live = tokensOf(tokens, user.id).filter((one) => !hasExpired(one, command.now));
      const same = live.find(({ name }) => nameKey(name) === nameKey(token.name));
      if (same !== undefined)
        return refuse('conflict', `name: the API token "${same.name}" (${same.id}) has this name`);
      if (live.length >= limits.accounts.apiTokens.live) {
        return refuse(
          'conflict',
          `the user has ${live.length} API tokens; expected at most ${limits.accounts.apiTokens.live}: delete one first`,
        );
      }
      return ok([{ type: 'ApiTokenCreated', data: { ...token, api_token_id: id } }]);
    }
    case 'DeleteApiToken': {
      const token = tokens.byId.get(command.id);
      if (token === undefined) return refuse('not_found', 'no API token has this id');
      const mismatch = versionMismatch(token.version, command.ifMatch);
      if (mismatch !== undefined) return { ok: false, error: mismatch };
      const { id: api_token_id, user_id, name, role, from, expires_at } = token;
      return ok([{ type: 'ApiTokenDeleted', data: { user_id, api_token_id, name, role, from, expires_at } }]);
    }
    default:
      return unreachable(command);
  }
}

export function applyApiToken(tokens: ApiTokens, event: ApiTokenEvent, { metadata }: RecordedEvent): void {
  switch (event.type) {
    case 'ApiTokenCreated': {
      const { api_token_id: id, ...fields } = event.data;
      const at = Date.parse(metadata.occurred_at);
      for (const token of tokensOf(tokens, fields.user_id)) if (isForgotten(token, at)) endApiToken(tokens, token.id);
      tokens.byId.set(id, { ...fields, ...firstVersion(id, metadata.occurred_at) });
      tokens.hashes.set(fields.token_sha256, id);
      tokens.ofUser.add(fields.user_id, id);
      break;
    }
    case 'ApiTokenDeleted':
      endApiToken(tokens, event.data.api_token_id);
      break;
    default:
      unreachable(event);
  }
}

/** Forgets a token except for its hash. */
export function endApiToken(tokens: ApiTokens, id: string): void {
  const token = tokens.byId.get(id);
  if (token === undefined) return;
  tokens.byId.delete(id);
  tokens.hashes.delete(token.token_sha256);
  tokens.ofUser.remove(token.user_id, id);
  rememberEnded(tokens.gone, token.token_sha256);
}

/** Adds to a table of what has ended. Replaces the oldest when the table is full. */
export function rememberEnded(ended: Table<true>, key: string): void {
  if (ended.size >= limits.accounts.endedTokens) {
    const [oldest] = ended.ids();
    if (oldest !== undefined) ended.delete(oldest);
  }
  ended.set(key, true);
}

/**
 * API tokens as REST sees them: creates, lists and deletes them, and authenticates their users. Rules and state are in
 * `src/domain/accounts/api-token.ts`. Implements `docs/contract/automation.md#api-tokens`.
 */
import type { AccountsHandlers, ApiTokenView, Caller } from '../commands/accounts-port.js';
import { present } from '../commands/resources.js';
import { hasExpired, isForgotten, tokensOf, type ApiTokenState } from '../domain/accounts/api-token.js';
import { roles, type Role } from '../domain/accounts/user.js';
import { createAddressBuckets } from '../kernel/address-buckets.js';
import { addressRanges } from '../kernel/cidr.js';
import { timestamp } from '../kernel/clock.js';
import { ServiceError } from '../kernel/errors.js';
import { limits } from '../kernel/limits.js';
import { apiTokenHash, generateApiToken } from '../security/api-token.js';
import { endEverywhere, type AccountParts } from './parts.js';
import { pageOf } from './page.js';
import type { TokenUse } from './token-uses.js';
import { tuning } from './tuning.js';

const { apiTokens: bounds } = limits.accounts;
const dayMs = 86_400_000;

export function apiTokenHandlers(parts: AccountParts): AccountsHandlers['apiTokens'] {
  const { gateway, view, clock, ids, uses } = parts;
  const { apiTokens } = view.accounts;

  const viewOf = ({ token_sha256: _secret, ...token }: ApiTokenState, last?: TokenUse): ApiTokenView => ({
    ...token,
    expired: hasExpired(token, clock.now()),
    last_used_at: last?.at ?? null,
    last_used_from: last?.from ?? null,
  });

  async function shown(tokens: readonly ApiTokenState[]): Promise<ApiTokenView[]> {
    const last = await uses.of(tokens.map(({ id }) => id));
    return tokens.map((token) => viewOf(token, last.get(token.id)));
  }

  /** Users see their own tokens, admins see all; nobody sees a forgotten one. */
  const sees = (caller: Caller, token: ApiTokenState): boolean =>
    !isForgotten(token, clock.now()) && (caller.role === 'admin' || token.user_id === caller.userId);

  function visible(caller: Caller, id: string): ApiTokenState | undefined {
    const token = apiTokens.byId.get(id);
    return token !== undefined && sees(caller, token) ? token : undefined;
  }

  return {
    async list(caller, query) {
      const tokens = query.userId === undefined ? [...apiTokens.byId.values()] : tokensOf(apiTokens, query.userId);
      const { items, ...rest } = pageOf(
        tokens.filter((token) => sees(caller, token)),
        query,
        ({ name }) => name,
      );
      return { items: await shown(items), ...rest };
    },
    async get(caller, id) {
      const token = visible(caller, id);
      return token === undefined ? undefined : (await shown([token]))[0];
    },
    async create(context, caller, { expires_in_days: days, ...fields }) {
      if (roles.indexOf(fields.role) < roles.indexOf(caller.role)) {
        throw new ServiceError('forbidden', `role: expected at most the caller's own, ${caller.role}`);
      }
      const now = clock.now();
      const { token, ...marks } = generateApiToken();
      const id = ids.next();
      const expires_at = days === null ? null : timestamp(now + days * dayMs);
      const outcome = await gateway.execute(
        { type: 'CreateApiToken', token: { ...fields, ...marks, id, user_id: caller.userId, expires_at }, now },
        context,
        (accounts) => present(accounts.apiTokens.byId.get(id)),
      );
      // Nobody has used it yet: the only answer with the token must not depend on the read store.
      return outcome.kind === 'done' ? { ...outcome, result: { apiToken: viewOf(outcome.result), token } } : outcome;
    },
    async remove(context, caller, id, ifMatch) {
      if (visible(caller, id) === undefined) throw new ServiceError('not_found', 'no API token has this id');
      const outcome = await gateway.execute({ type: 'DeleteApiToken', id, ifMatch }, context, () => undefined);
      if (outcome.kind === 'done') await endEverywhere(parts, outcome.events, 'an API token', { api_token_id: id });
      return outcome;
    },
  };
}

/** Returns the function that authenticates API tokens. */
export function apiTokenAuthentication(parts: AccountParts): AccountsHandlers['authenticate'] {
  const { view, clock, uses, refusals } = parts;
  const { users, apiTokens } = view.accounts;
  const guesses = createAddressBuckets(bounds.guesses, tuning.guessAddresses, clock);
  const admits = new WeakMap<ApiTokenState, (address: string) => boolean>();

  /** The caller; `refused` for a token that has ended or comes from elsewhere; undefined for an unknown one. */
  function callerOf(token_sha256: string, address: string): Caller | 'refused' | undefined {
    const id = apiTokens.hashes.get(token_sha256);
    if (id === undefined) return apiTokens.gone.has(token_sha256) ? 'refused' : undefined;
    const token = present(apiTokens.byId.get(id));
    const user = users.get(token.user_id);
    if (user === undefined || hasExpired(token, clock.now())) return 'refused';
    if (token.from.length > 0 && !admitted(token, address)) {
      const { id: api_token_id, name: api_token, user_id } = token;
      const line = { reason: 'api_token_address', address, api_token_id, api_token, user_id };
      refusals.note(line, 'an API token was refused: it came from an address outside its `from`');
      return 'refused';
    }
    uses.note(id, address);
    return {
      userId: user.id,
      username: user.username,
      role: lower(user.role, token.role),
      tokenId: id,
      apiToken: { id, name: token.name },
      ended: () => !apiTokens.byId.has(id) || hasExpired(token, clock.now()),
    };
  }

  function admitted(token: ApiTokenState, address: string): boolean {
    let check = admits.get(token);
    if (check === undefined) admits.set(token, (check = addressRanges(token.from)));
    return check(address);
  }

  const known = (caller: Caller | 'refused' | undefined): Caller | undefined =>
    caller === 'refused' ? undefined : caller;

  return (token, address) => {
    const token_sha256 = apiTokenHash(token);
    const caller = token_sha256 === undefined ? undefined : callerOf(token_sha256, address);
    if (caller !== undefined) return known(caller);
    const waitMs = guesses.take(address);
    if (waitMs > 0) {
      throw new ServiceError('rate_limited', 'too many unknown API tokens from this address; try again later', {
        hints: { retryAfterSeconds: waitMs / 1000 },
      });
    }
    if (token_sha256 === undefined) return undefined;
    // Another instance may have created it a moment ago.
    return view.readToEnd(limits.rest.projectionWaitMs).then(() => {
      const found = callerOf(token_sha256, address);
      if (found !== undefined) guesses.give(address);
      return known(found);
    });
  };
}

/** The role that may do less. */
const lower = (a: Role, b: Role): Role => (roles.indexOf(a) > roles.indexOf(b) ? a : b);

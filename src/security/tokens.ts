/**
 * Access tokens: JWT signed with Ed25519, verified with a bounded cache. Not the last word on a caller: whether `ver`
 * is still the user's (a password change raises it) is checked per request by whoever holds the accounts.
 * Implements `docs/contract/rest.md#authentication-and-roles`: claims `sub`, `role`, `ver`; 12 h by default.
 */
import { createHash } from 'node:crypto';
import { createSigner, createVerifier } from 'fast-jwt';
import type { Clock } from '../kernel/clock.js';
import { createLru } from '../kernel/lru.js';
import { tokenKeysFrom } from './service-identity.js';

/** Verified tokens held in memory. */
const cachedTokens = 10_000;
/** Far above a token of this service, which has a few hundred characters. */
const tokenChars = 4096;

export interface TokenSubject {
  /** User id. */
  readonly sub: string;
  readonly role: string;
  /** Grows with each password change of the user. */
  readonly ver: number;
}

export interface TokenClaims extends TokenSubject {
  /** Seconds since the Unix epoch. */
  readonly iat: number;
  readonly exp: number;
  readonly jti?: string;
}

export interface IssuedToken {
  readonly token: string;
  /** Seconds until it expires. */
  readonly expiresIn: number;
}

export type VerifiedToken =
  | { readonly kind: 'valid'; readonly claims: TokenClaims }
  /** `invalid` covers every forgery and malformation alike; the caller answers both with 401. */
  | { readonly kind: 'refused'; readonly reason: 'invalid' | 'expired' };

export interface Tokens {
  issue(subject: TokenSubject, jti?: string): IssuedToken;
  verify(token: string): VerifiedToken;
}

export interface TokensOptions {
  /** 32-byte Ed25519 seed. */
  readonly seed: Uint8Array;
  readonly ttlSeconds: number;
  readonly clock: Clock;
  readonly maxCachedTokens?: number;
}

const refused: VerifiedToken = { kind: 'refused', reason: 'invalid' };
const expired: VerifiedToken = { kind: 'refused', reason: 'expired' };

/**
 * Tokens of one signing key.
 * @throws RangeError when the seed is not 32 bytes.
 */
export function createTokens(options: TokensOptions): Tokens {
  const { clock, ttlSeconds } = options;
  const keys = tokenKeysFrom(options.seed);
  const sign = createSigner({
    algorithm: 'EdDSA',
    key: keys.privateKey.export({ format: 'pem', type: 'pkcs8' }).toString(),
  });
  // One algorithm only, so that a token can't choose. Expiry is judged here, by the injected clock.
  const checkSignature = createVerifier({
    algorithms: ['EdDSA'],
    key: keys.publicKey.export({ format: 'pem', type: 'spki' }).toString(),
    cache: false,
    checkTyp: 'JWT',
    ignoreExpiration: true,
  });
  const cache = createLru<string, TokenClaims>({ maxEntries: options.maxCachedTokens ?? cachedTokens });
  const nowSeconds = (): number => Math.floor(clock.now() / 1000);

  const claimsOf = (token: string): TokenClaims | undefined => {
    try {
      return readClaims(checkSignature(token));
    } catch {
      return undefined;
    }
  };

  return {
    issue(subject, jti) {
      const iat = nowSeconds();
      const claims: TokenClaims = {
        sub: subject.sub,
        role: subject.role,
        ver: subject.ver,
        iat,
        exp: iat + ttlSeconds,
        ...(jti === undefined ? {} : { jti }),
      };
      return { token: sign({ ...claims }), expiresIn: ttlSeconds };
    },
    verify(token) {
      if (token.length === 0 || token.length > tokenChars) return refused;
      // The hash as key keeps tokens themselves out of long-lived memory.
      const cacheKey = createHash('sha256').update(token).digest('base64');
      let claims = cache.get(cacheKey);
      if (claims === undefined) {
        claims = claimsOf(token);
        if (claims === undefined) return refused;
        if (claims.exp > nowSeconds()) cache.set(cacheKey, claims);
      }
      if (claims.exp > nowSeconds()) return { kind: 'valid', claims };
      cache.delete(cacheKey);
      return expired;
    },
  };
}

/** Signed by us does not mean shaped by this release: the types are checked all the same. */
function readClaims(payload: unknown): TokenClaims | undefined {
  if (typeof payload !== 'object' || payload === null) return undefined;
  const { sub, role, ver, iat, exp, jti } = payload as Record<string, unknown>;
  if (typeof sub !== 'string' || typeof role !== 'string') return undefined;
  if (!isWhole(ver) || !isWhole(iat) || !isWhole(exp)) return undefined;
  if (jti !== undefined && typeof jti !== 'string') return undefined;
  return { sub, role, ver, iat, exp, ...(jti === undefined ? {} : { jti }) };
}

function isWhole(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

/**
 * Access tokens: JWTs signed with Ed25519. A valid token may have been ended, by a password change, which replaces the
 * user's `ver`, or by a sign-out of its `jti`: REST checks both on each request. Implements
 * `docs/contract/rest.md#authentication-and-roles`.
 */
import { createPrivateKey, createPublicKey, hash, randomBytes, randomUUID, type KeyObject } from 'node:crypto';
import { createSigner, createVerifier } from 'fast-jwt';
import type { Clock } from '../kernel/clock.js';
import { createLru } from '../kernel/lru.js';

/** PKCS #8 header of an Ed25519 private key (RFC 8410); the 32-byte seed follows. */
const pkcs8Prefix = Buffer.from('302e020100300506032b657004220420', 'hex');
/** Verified tokens cached in memory: verifying takes a fifth of the time of a command. */
const cachedTokens = 10_000;
/** Longer tokens are refused unread; the service's own have a few hundred characters. */
const tokenChars = 4096;

export interface TokenSubject {
  /** User id. */
  readonly sub: string;
  readonly role: string;
  /** New at each password change of the user; it never repeats. */
  readonly ver: string;
}

export interface TokenClaims extends TokenSubject {
  /** Seconds since the Unix epoch. */
  readonly iat: number;
  readonly exp: number;
  /** The token's own id, a UUID. */
  readonly jti: string;
}

export interface IssuedToken {
  readonly token: string;
  /** Seconds until it expires. */
  readonly expiresIn: number;
}

export interface Tokens {
  issue(subject: TokenSubject): IssuedToken;
  /** @returns undefined for a token that has expired, is malformed, or that the key has not signed */
  verify(token: string): TokenClaims | undefined;
  /**
   * Signs and verifies with a new key from now on, so that all earlier tokens are refused.
   * @param seed 32-byte Ed25519 seed
   * @throws RangeError when the seed is not 32 bytes
   */
  replaceKey(seed: Uint8Array): void;
}

export interface TokensOptions {
  /** 32-byte Ed25519 seed. */
  readonly seed: Uint8Array;
  readonly ttlSeconds: number;
  readonly clock: Clock;
  readonly maxCachedTokens?: number;
}

/** A signer and a verifier for one key. @throws RangeError unless the seed has 32 bytes */
function signatureOf(seed: Uint8Array) {
  const keys = tokenKeysFrom(seed);
  return {
    sign: createSigner({
      algorithm: 'EdDSA',
      key: keys.privateKey.export({ format: 'pem', type: 'pkcs8' }).toString(),
    }),
    // A single algorithm, so that a token cannot choose. Expiry is checked below, with the injected clock.
    check: createVerifier({
      algorithms: ['EdDSA'],
      key: keys.publicKey.export({ format: 'pem', type: 'spki' }).toString(),
      cache: false,
      checkTyp: 'JWT',
      ignoreExpiration: true,
    }),
  };
}

/**
 * Issues and verifies tokens with one signing key at a time.
 * @throws RangeError unless the seed has 32 bytes
 */
export function createTokens(options: TokensOptions): Tokens {
  const { clock, ttlSeconds } = options;
  let signature = signatureOf(options.seed);
  const emptyCache = () => createLru<TokenClaims>(options.maxCachedTokens ?? cachedTokens);
  let cache = emptyCache();
  const nowSeconds = (): number => Math.floor(clock.now() / 1000);

  const claimsOf = (token: string): TokenClaims | undefined => {
    try {
      return readClaims(signature.check(token));
    } catch {
      return undefined;
    }
  };

  return {
    issue(subject) {
      const iat = nowSeconds();
      const { sub, role, ver } = subject;
      const claims = { sub, role, ver, iat, exp: iat + ttlSeconds, jti: randomUUID() } satisfies TokenClaims;
      return { token: signature.sign(claims), expiresIn: ttlSeconds };
    },
    verify(token) {
      if (token.length > tokenChars) return undefined;
      // Keyed by hash, so that the tokens themselves do not stay in memory.
      const cacheKey = hash('sha256', token, 'base64');
      const claims = cache.get(cacheKey) ?? claimsOf(token);
      if (claims === undefined || claims.exp <= nowSeconds()) {
        cache.delete(cacheKey);
        return undefined;
      }
      cache.set(cacheKey, claims);
      return claims;
    },
    replaceKey(seed) {
      signature = signatureOf(seed);
      cache = emptyCache();
    },
  };
}

/** Another release may have signed the token, so the types are checked even after a valid signature. */
function readClaims({ sub, role, ver, iat, exp, jti }: Record<string, unknown>): TokenClaims | undefined {
  if (typeof sub !== 'string' || typeof role !== 'string' || typeof ver !== 'string') return undefined;
  if (!isWhole(iat) || !isWhole(exp) || typeof jti !== 'string') return undefined;
  return { sub, role, ver, iat, exp, jti };
}

function isWhole(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

/** A new Ed25519 seed: 32 bytes, secret. */
export function generateTokenSeed(): Uint8Array {
  return randomBytes(32);
}

export interface TokenKeys {
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

/**
 * The Ed25519 key pair of a seed.
 * @throws RangeError unless the seed has 32 bytes
 */
export function tokenKeysFrom(seed: Uint8Array): TokenKeys {
  if (seed.length !== 32) throw new RangeError(`token signing seed: expected 32 bytes, got ${seed.length}`);
  const der = Buffer.concat([pkcs8Prefix, seed]);
  const privateKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  der.fill(0);
  return { privateKey, publicKey: createPublicKey(privateKey) };
}

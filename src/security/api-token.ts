/**
 * The text of an API token: generated once, shown once, afterwards known only by its hash. Its rules are in
 * `src/domain/accounts/api-token.ts`. Implements `docs/contract/automation.md#api-tokens`.
 */
import { hash, randomBytes } from 'node:crypto';

const mark = 'svcat_';
const form = /^svcat_[A-Za-z0-9_-]{43}$/;
const prefixChars = 12;

export interface NewApiToken {
  /** Secret. */
  readonly token: string;
  readonly prefix: string;
  /** Hexadecimal. */
  readonly token_sha256: string;
}

export function generateApiToken(): NewApiToken {
  const token = `${mark}${randomBytes(32).toString('base64url')}`;
  return { token, prefix: token.slice(0, prefixChars), token_sha256: hashOf(token) };
}

/** Whether a bearer token looks like an API token. */
export const isApiToken = (token: string): boolean => token.startsWith(mark);

/** The hash that identifies the token in the log; undefined for a token that the service cannot have issued. */
export function apiTokenHash(token: string): string | undefined {
  return form.test(token) ? hashOf(token) : undefined;
}

/** 256 random bits cannot be guessed, so one fast hash is enough. */
const hashOf = (token: string): string => hash('sha256', token, 'hex');

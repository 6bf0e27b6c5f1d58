/**
 * The form of user names and passwords. The fold keeps names unique (`accounts.ts`), and `src/security` compares
 * passwords. Implements `docs/contract/rest.md#authentication-and-roles`.
 */
import { limits } from '../../kernel/limits.js';

const { passwordChars, usernameChars } = limits.accounts;
const username = new RegExp(`^[a-z0-9._-]{${usernameChars.min},${usernameChars.max}}$`);

/** The user name as it is stored and compared: lowered first. @returns undefined for what is no user name */
export function canonicalUsername(typed: string): string | undefined {
  const lowered = typed.toLowerCase();
  return username.test(lowered) ? lowered : undefined;
}

/** Whether a text is long enough for a password and not too long, in characters rather than UTF-16 units. */
export function isPassword(text: string): boolean {
  const characters = [...text].length;
  return characters >= passwordChars.min && characters <= passwordChars.max;
}

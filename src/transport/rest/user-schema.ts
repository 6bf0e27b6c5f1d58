/** The schemas of users: their fields in bodies, and how answers show them. Implements `docs/contract/rest.md#authentication-and-roles`. */
import { z } from 'zod';
import { canonicalUsername } from '../../domain/accounts/rules.js';
import { roles } from '../../domain/accounts/user.js';
import { limits } from '../../kernel/limits.js';
import { canonical, name, oneOf, text } from './fields.js';
import { role, timestamps } from './shared-schemas.js';

const { usernameChars, passwordChars } = limits.accounts;

export const userSchema = z
  .object({
    id: z.string(),
    username: z.string(),
    display_name: z.string().nullable(),
    email: z.string().nullable(),
    role,
    ...timestamps,
  })
  .meta({ id: 'User' });

/** What a user may say about itself. */
export const profileFields = {
  display_name: name
    .nullable()
    .optional()
    .meta({ examples: ['Ada Lovelace'] }),
  email: canonical('an e-mail address', (value) => (/^[^\s@]+@[^\s@]+$/.test(value) ? value : undefined))
    .nullable()
    .optional()
    .meta({ examples: ['ada@example.org'] }),
};

export const newPassword = text(passwordChars.min, passwordChars.max).meta({ examples: ['correct horse battery'] });

/** Any string: what is no password of this service is a wrong one. */
export const knownPassword = text(0, limits.rest.stringChars).meta({ examples: ['correct horse battery'] });

export const newUsername = canonical(
  `${usernameChars.min} to ${usernameChars.max} characters of a-z, 0-9, ".", "_" and "-", in any case`,
  canonicalUsername,
).meta({
  minLength: usernameChars.min,
  maxLength: usernameChars.max,
  pattern: `^[A-Za-z0-9._-]{${usernameChars.min},${usernameChars.max}}$`,
  examples: ['ada'],
});

export const newRole = oneOf(roles);

/** A token that was just signed, as answers show it. */
export const tokenFields = { token: z.string(), token_type: z.literal('Bearer'), expires_in: z.int() };

export function tokenView({ token, expiresIn }: { readonly token: string; readonly expiresIn: number }) {
  return { token, token_type: 'Bearer' as const, expires_in: expiresIn };
}

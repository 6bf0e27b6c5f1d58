/** The schemas of users: their fields in bodies, and how answers show them. Implements `docs/contract/rest.md#authentication-and-roles`. */
import { z } from 'zod';
import { canonicalUsername } from '../../../domain/accounts/rules.js';
import { roles } from '../../../domain/accounts/user.js';
import { limits } from '../../../kernel/limits.js';
import { canonical, name, oneOf, text } from '../schemas/fields.js';
import { described, sample } from '../openapi/openapi-text.js';
import { aboutRole, idOf, role, timestamps } from '../schemas/shared-schemas.js';

const { usernameChars, passwordChars } = limits.accounts;

/** What the document says of fields that requests and answers share. */
const about = {
  username: 'Name to sign in with, unique, in lower case',
  display_name: 'Name for people',
  email: 'E-mail address',
};

export const userSchema = z
  .object({
    id: idOf('Id, a UUID', sample.user),
    username: described(z.string(), about.username, 'ada'),
    display_name: described(z.string().nullable(), about.display_name, 'Ada Lovelace'),
    email: described(z.string().nullable(), about.email, 'ada@example.org'),
    role,
    ...timestamps,
  })
  .meta({ id: 'User', description: 'A user' });

/** What a user may say about itself. */
export const profileFields = {
  display_name: name
    .nullable()
    .optional()
    .meta({ description: about.display_name, examples: ['Ada Lovelace'] }),
  email: canonical('an e-mail address', (value) => (/^[^\s@]+@[^\s@]+$/.test(value) ? value : undefined))
    .nullable()
    .optional()
    .meta({ description: about.email, examples: ['ada@example.org'] }),
};

export const newPassword = text(passwordChars.min, passwordChars.max).meta({
  description: `What it is to be, ${passwordChars.min} to ${passwordChars.max} characters`,
  examples: ['correct horse battery'],
});

/** Any string: what is no password of this service is a wrong one. */
export const knownPassword = text(0, limits.rest.stringChars).meta({
  description: 'The password as it is now',
  examples: ['correct horse battery'],
});

export const newUsername = canonical(
  `${usernameChars.min} to ${usernameChars.max} characters of a-z, 0-9, ".", "_" and "-", in any case`,
  canonicalUsername,
).meta({
  minLength: usernameChars.min,
  maxLength: usernameChars.max,
  description: `${about.username}; ${usernameChars.min} to ${usernameChars.max} characters of a-z, 0-9, ".", "_" and "-", in any case`,
  pattern: `^[A-Za-z0-9._-]{${usernameChars.min},${usernameChars.max}}$`,
  examples: ['ada'],
});

export const newRole = described(oneOf(roles), aboutRole, 'operator');

/** A token that was just signed, as answers show it. */
export const tokenFields = {
  token: described(z.string(), 'Access token for `Authorization: Bearer <token>`', '<header>.<claims>.<signature>'),
  token_type: described(z.literal('Bearer'), 'How it is sent'),
  expires_in: described(z.int(), 'Seconds until it expires', 43_200),
};

export function tokenView({ token, expiresIn }: { readonly token: string; readonly expiresIn: number }) {
  return { token, token_type: 'Bearer' as const, expires_in: expiresIn };
}

/**
 * Users: their fields, and the routes for admins to list, create and get them, and to reset a password. `auth.ts` has the
 * caller's own account. Implements `docs/contract/rest.md#authentication-and-roles`.
 */
import { z } from 'zod';
import type { NewToken } from '../../../commands/accounts-port.js';
import { canonicalUsername, normalPassword, roles } from '../../../domain/accounts/user.js';
import { ServiceError } from '../../../kernel/errors.js';
import { limits } from '../../../kernel/limits.js';
import { callerOf, commandContext, setCommandHeaders } from '../checks/consistency.js';
import type { RestApp, RestDeps } from '../deps.js';
import { answers, ok } from '../answers/envelope.js';
import { component, documented, sample } from '../schemas/documented.js';
import { body, canonical, name, oneOf, text } from '../schemas/fields.js';
import { aboutRole, idOf, role, timestamps } from '../schemas/shared-schemas.js';
import { pathId } from '../checks/path-id.js';
import { listing, sorting } from '../schemas/query.js';
import { resourceRoutes } from './resource-routes.js';

const { usernameChars, passwordChars } = limits.accounts;

/** Descriptions of fields that requests and answers share. */
const about = {
  username: 'Name to sign in with, unique, in lower case',
  display_name: 'Name for people',
  email: 'E-mail address',
};

export const userSchema = component('User', 'A user', {
  id: idOf('Id, a UUID', sample.user),
  username: documented(z.string(), about.username, 'ada'),
  display_name: documented(z.string().nullable(), about.display_name, 'Ada Lovelace'),
  email: documented(z.string().nullable(), about.email, 'ada@example.org'),
  role,
  ...timestamps,
});

const resetSchema = userSchema
  .extend({
    join_tokens_deleted: documented(z.int(), 'How many join tokens of the user this request has deleted', 0),
  })
  .meta({ id: 'UserAfterReset', description: 'The user whose password was reset' });

const emailPattern = /^[^\s@]+@[^\s@]+$/;

/** The fields that a user may change itself. */
export const profileFields = {
  display_name: documented(name.nullable().optional(), about.display_name, 'Ada Lovelace'),
  email: canonical('an e-mail address', (value) => (emailPattern.test(value) ? value : undefined))
    .meta({ pattern: emailPattern.source })
    .nullable()
    .optional()
    .meta({ description: about.email, examples: ['ada@example.org'] }),
};

export const newPassword = text(passwordChars.min, passwordChars.max, normalPassword).meta({
  description: `The new password, ${passwordChars.min} to ${passwordChars.max} characters`,
  examples: ['correct horse battery'],
});

/** Any string: an invalid password is a wrong one. */
export const knownPassword = text(0, limits.rest.stringChars).meta({
  description: 'The current password',
  examples: ['correct horse battery'],
});

const newUsername = canonical(
  `${usernameChars.min} to ${usernameChars.max} characters of a-z, 0-9, ".", "_" and "-", in any case`,
  canonicalUsername,
).meta({
  minLength: usernameChars.min,
  maxLength: usernameChars.max,
  description: `${about.username}; ${usernameChars.min} to ${usernameChars.max} characters of a-z, 0-9, ".", "_" and "-", in any case`,
  pattern: `^[A-Za-z0-9._-]{${usernameChars.min},${usernameChars.max}}$`,
  examples: ['ada'],
});

const newRole = documented(oneOf(roles), aboutRole, 'operator');

/** A new token in answers. */
export const tokenFields = {
  token: documented(
    z.string().optional(),
    'Access token for `Authorization: Bearer <token>`; absent when the cookie has it',
    '<header>.<claims>.<signature>',
  ),
  token_type: documented(z.literal('Bearer'), 'How it is sent'),
  expires_in: documented(z.int(), 'Seconds until it expires', 43_200),
};

export function tokenView({ token, expiresIn }: NewToken) {
  return { token, ...cookieView({ expiresIn }) };
}

/** The same for a token that is set as a cookie. */
export function cookieView({ expiresIn }: Pick<NewToken, 'expiresIn'>) {
  return { token_type: 'Bearer' as const, expires_in: expiresIn };
}

const path = '/api/auth/users';
const what = 'user';
/** Users sort by `name` as on every list, or by the field's own name. */
const userSorts = { username: 'name', '-username': '-name' } as const;

const filters = {
  sort: sorting('username', '-username')
    .transform((sort) => (sort === 'username' || sort === '-username' ? userSorts[sort] : sort))
    .optional()
    .meta({
      description: 'Order of the items, then by id; `-` reverses it; `name` is the user name',
      default: 'username',
    }),
  q: listing.q.meta({ description: 'Case-insensitive substring of the user name', examples: ['ada'] }),
};

const newUser = body({ username: newUsername, password: newPassword, role: newRole, ...profileFields }).meta({
  id: 'NewUser',
  description: 'Create a user',
});

const reset = body({ new_password: newPassword }).meta({
  id: 'PasswordReset',
  description: 'The new password of another user',
});

export function userRoutes(app: RestApp, deps: RestDeps): void {
  const { accounts } = deps.commands;

  resourceRoutes(app, {
    path,
    what,
    access: { read: 'admin', write: 'admin' },
    names: { one: 'User', many: 'Users' },
    summaries: { list: 'List users', create: 'Create a user', get: 'Get a user' },
    details: {
      list: 'Sorted by user name by default.',
      create:
        'The user name is converted to lower case and must be unique. With an Idempotency-Key, a repeat answers with the current user.',
    },
    shape: {},
    bodies: { create: newUser },
    inFile: null,
    schema: userSchema,
    filters,
    list: (paged) => accounts.users(paged),
    get: (id) => accounts.user(id),
    create: (context, _definition, checked) => accounts.createUser(context, checked as z.output<typeof newUser>),
  });

  app.put(`${path}/:id/password`, {
    config: { access: 'admin', takes: 'json', refuses: ['rate_limited'] },
    async onRequest(request) {
      const { id } = request.params as { readonly id: string };
      if (id.toLowerCase() !== callerOf(request).userId) return;
      throw new ServiceError('forbidden', 'expected the id of another user; your own password: PUT /api/auth/password');
    },
    schema: {
      operationId: 'resetPassword',
      summary: "Reset a user's password",
      description:
        "Deletes the join tokens that the user has made, then ends all tokens of the user at once, including API tokens. The caller's own password cannot be reset here: that is a 403.",
      body: reset,
      response: answers(resetSchema),
    },
    handler: async (request, reply) => {
      const outcome = await accounts.resetPassword(
        commandContext(request),
        pathId(request.params, what),
        request.headers['if-match'],
        request.body.new_password,
      );
      setCommandHeaders(reply, outcome);
      const { user, joinTokensDeleted } = outcome.result;
      return ok({ ...user, join_tokens_deleted: joinTokensDeleted });
    },
  });
}

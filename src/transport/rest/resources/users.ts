/**
 * Users, for admins: list, create, get. There is no route to delete, disable or change one: its own account changes
 * through `auth.ts`. Implements `docs/contract/rest.md#authentication-and-roles`.
 */
import { z } from 'zod';
import { commandContext, setCommandHeaders } from '../checks/consistency.js';
import type { RestApp, RestDeps } from '../deps.js';
import { answers, created, ok, pageOf } from '../answers/envelope.js';
import { body } from '../schemas/fields.js';
import { etag, postHeaders, readHeaders } from '../schemas/headers.js';
import { idParams, orNotFound, pathId } from '../checks/path-id.js';
import { listQuery, listing, noQuery, query, sorts } from '../schemas/query.js';
import { newPassword, newRole, newUsername, profileFields, userSchema } from './user-schema.js';
import { expected } from '../checks/validation.js';

const path = '/api/auth/users';
const what = 'user';
const tags = ['auth'] as const;

/** `name` as on every list, or the field that it is. */
const userSorts = { username: 'name', '-username': '-name' } as const;

const listQuerystring = query({
  ...listing,
  sort: z
    .enum([...sorts, 'username', '-username'], {
      error: expected('username, created_at or updated_at, or one of them after "-"'),
    })
    .transform((sort) => (sort === 'username' || sort === '-username' ? userSorts[sort] : sort))
    .optional()
    .meta({
      description: 'Order of the items, with `-` backwards, then by id; `name` is the user name',
      default: 'username',
    }),
  q: listing.q.meta({ description: 'Case-insensitive substring of the user name', examples: ['ada'] }),
});

const newUser = body({ username: newUsername, password: newPassword, role: newRole, ...profileFields }).meta({
  id: 'NewUser',
  description: 'Create a user',
});

export function userRoutes(app: RestApp, deps: RestDeps): void {
  const { accounts } = deps.commands;

  app.route({
    method: 'GET',
    url: path,
    config: { access: 'admin', takes: 'none' },
    schema: {
      operationId: 'listUsers',
      summary: 'List users',
      description: 'A page of a list; a page past the end is empty. Sorted by user name, unless asked otherwise.',
      tags,
      querystring: listQuerystring,
      headers: readHeaders,
      response: answers(pageOf(userSchema)),
    },
    handler: async (request) => {
      const paged = listQuery(request.query);
      const { items, total } = await accounts.users(paged);
      return ok({ items, total, page: paged.page, page_size: paged.pageSize });
    },
  });

  app.route({
    method: 'POST',
    url: path,
    config: { access: 'admin', takes: 'json', refuses: ['conflict', 'rate_limited'] },
    schema: {
      operationId: 'createUser',
      summary: 'Create a user',
      description:
        'The user name is lowered first and must be unique. With an Idempotency-Key, a repeat answers with the user as it now is.',
      tags,
      querystring: noQuery,
      headers: postHeaders,
      body: newUser,
      response: created(userSchema),
    },
    handler: async (request, reply) => {
      const outcome = await accounts.createUser(commandContext(request), request.body);
      setCommandHeaders(reply, outcome);
      const user = outcome.kind === 'done' ? outcome.result : orNotFound(await accounts.user(outcome.resourceId), what);
      return reply.code(201).header('location', `${path}/${user.id}`).send(ok(user));
    },
  });

  app.route({
    method: 'GET',
    url: `${path}/:id`,
    config: { access: 'admin', takes: 'none', sendsEtag: true },
    schema: {
      operationId: 'getUser',
      summary: 'Get a user',
      description: 'Its version is the `ETag`.',
      tags,
      params: idParams,
      querystring: noQuery,
      headers: readHeaders,
      response: answers(userSchema),
    },
    handler: async (request, reply) => {
      const user = orNotFound(await accounts.user(pathId(request.params, what)), what);
      void reply.header('etag', etag(user.version));
      return ok(user);
    },
  });
}

/** API tokens, the sign-ins of programs. Implements `docs/contract/automation.md#api-tokens`. */
import { z } from 'zod';
import { roles } from '../../../domain/accounts/user.js';
import { canonicalRange } from '../../../kernel/cidr.js';
import { limits } from '../../../kernel/limits.js';
import { callerOf, commandContext, setCommandHeaders } from '../checks/consistency.js';
import { orNotFound, pathId } from '../checks/path-id.js';
import type { RestApp, RestDeps } from '../deps.js';
import { answers, created, ok, pageOf } from '../answers/envelope.js';
import { component, documented, sample } from '../schemas/documented.js';
import { body, canonical, integer, list, name, oneOf, uuid } from '../schemas/fields.js';
import { etag } from '../schemas/headers.js';
import { listAnswer, listQuery, listing, query } from '../schemas/query.js';
import { idOf, role, time, timestamps } from '../schemas/shared-schemas.js';

const { days, ranges } = limits.accounts.apiTokens;
const prefix = 'svcat_Q2hhbm';

const about = {
  name: 'Unique among the live tokens of its user',
  role: 'At most the role of its user; `viewer` reads, `operator` changes everything but users',
  from: 'Addresses and CIDRs that may use it; empty: any',
};

const fields = {
  id: idOf('Id, a UUID', sample.entry),
  user_id: idOf('Id of its user', sample.user),
  name: documented(z.string(), about.name, 'ci'),
  role: documented(role, about.role, 'operator'),
  from: documented(z.array(z.string()), about.from, ['192.0.2.0/24']),
  prefix: documented(z.string(), 'The first characters of the token, to recognize it', prefix),
  expired: documented(z.boolean(), 'Whether it has expired; it stays in the list for 30 days', false),
  expires_at: documented(time.nullable(), 'When it expires; null: never', sample.later),
  last_used_at: documented(time.nullable(), 'When it was last used, to the minute; null: never', sample.time),
  last_used_from: documented(z.string().nullable(), 'The address that last used it', '192.0.2.10'),
  ...timestamps,
};

const apiTokenSchema = component('ApiToken', 'The sign-in of a program', fields);

const createdSchema = component('CreatedApiToken', 'A new API token with its text', {
  ...fields,
  token: documented(
    z.string().nullable(),
    'For `Authorization: Bearer <token>`; shown only once, null in a repeat',
    `${prefix}dlIG1lIGJlZm9yZSB1c2UsIHRoaXMgaXMgYW4gZXg`,
  ),
});

const newApiToken = body({
  name: name.meta({ description: about.name, examples: ['ci'] }),
  role: documented(oneOf(roles), about.role, 'operator'),
  expires_in_days: integer(days.min, days.max)
    .nullable()
    .optional()
    .meta({ description: `Days until it expires; null: never; default \`${days.default}\``, examples: [30] }),
  from: list(
    canonical('an IP address or a CIDR such as 192.0.2.0/24', canonicalRange).meta({
      pattern: '^[0-9A-Fa-f:.]+(/[0-9]{1,3})?$',
    }),
    0,
    ranges,
  )
    .optional()
    .meta({ description: about.from, examples: [['192.0.2.0/24']] }),
}).meta({ id: 'NewApiToken', description: 'Create an API token' });

const path = '/api/auth/tokens';
const what = 'API token';
const listQuerystring = query({
  ...listing,
  user_id: uuid.optional().meta({ description: 'Only those of this user', examples: [sample.user] }),
});

export function apiTokenRoutes(app: RestApp, deps: RestDeps): void {
  const { apiTokens } = deps.commands.accounts;

  app.get(path, {
    config: { access: 'anyone', takes: 'none' },
    schema: {
      operationId: 'listApiTokens',
      summary: 'List API tokens',
      description: "The caller's own; an admin gets those of all users. Expired ones stay in the list for 30 days.",
      querystring: listQuerystring,
      response: answers(pageOf(apiTokenSchema)),
    },
    handler: async (request) => {
      const query = { ...listQuery(request.query), userId: request.query.user_id };
      const { items, ...rest } = await apiTokens.list(callerOf(request), query);
      return ok(listAnswer(request.query, { items, ...rest }));
    },
  });

  app.post(path, {
    config: { access: 'anyone', takes: 'json', refuses: ['conflict'] },
    schema: {
      operationId: 'createApiToken',
      summary: 'Create an API token; its text is shown only once',
      description:
        "A role above the caller's is a 403. With an Idempotency-Key, a repeat answers with the current token, without its text. An API token cannot create another: that is a 403.",
      body: newApiToken,
      response: created(createdSchema),
    },
    handler: async (request, reply) => {
      const caller = callerOf(request);
      const { name: called, role: asked, from = [], expires_in_days = days.default } = request.body;
      const given = { name: called, role: asked, from, expires_in_days };
      const outcome = await apiTokens.create(commandContext(request), caller, given);
      setCommandHeaders(reply, outcome);
      const { apiToken, token } =
        outcome.kind === 'done'
          ? outcome.result
          : { apiToken: orNotFound(await apiTokens.get(caller, outcome.resourceId), what), token: null };
      return reply
        .code(201)
        .header('location', `${path}/${apiToken.id}`)
        .send(ok({ ...apiToken, token }));
    },
  });

  app.get(`${path}/:id`, {
    config: { access: 'anyone', takes: 'none', sendsEtag: true },
    schema: {
      operationId: 'getApiToken',
      summary: 'Get an API token',
      description: "Another user's is a 404, unless an admin asks.",
      response: answers(apiTokenSchema),
    },
    handler: async (request, reply) => {
      const token = orNotFound(await apiTokens.get(callerOf(request), pathId(request.params, what)), what);
      void reply.header('etag', etag(token.version));
      return ok(token);
    },
  });

  app.delete(`${path}/:id`, {
    config: { access: 'anyone', takes: 'none' },
    schema: {
      operationId: 'deleteApiToken',
      summary: 'Delete an API token',
      description:
        'Every live instance refuses it before the answer. An API token may delete only itself; another one is a 403.',
      response: answers(z.object({}).meta({ description: 'Deleted', examples: [{}] })),
    },
    handler: async (request, reply) => {
      const id = pathId(request.params, what);
      const outcome = await apiTokens.remove(
        commandContext(request),
        callerOf(request),
        id,
        request.headers['if-match'],
      );
      setCommandHeaders(reply, outcome);
      return ok({});
    },
  });
}

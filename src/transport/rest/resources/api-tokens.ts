/** API tokens, the sign-ins of programs. Implements `docs/contract/automation.md#api-tokens`. */
import { z } from 'zod';
import { roles } from '../../../domain/accounts/user.js';
import { canonicalRange } from '../../../kernel/cidr.js';
import { limits } from '../../../kernel/limits.js';
import type { NewApiTokenFields } from '../../../commands/accounts-port.js';
import { callerOf } from '../checks/consistency.js';
import type { RestApp, RestDeps } from '../deps.js';
import { component, documented, sample } from '../schemas/documented.js';
import { body, canonical, integer, list, name, oneOf, uuid } from '../schemas/fields.js';
import { idOf, role, time, timestamps } from '../schemas/shared-schemas.js';
import { resourceRoutes } from './resource-routes.js';

const { days, ranges } = limits.accounts.apiTokens;
const prefix = 'svcat_Q2hhbm';

const about = {
  name: 'Unique among the live tokens of its user',
  role: 'At most the role of its user; `viewer` reads, `operator` changes everything but users, webhooks and the identity',
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

type Body = Pick<NewApiTokenFields, 'name' | 'role'> & Partial<NewApiTokenFields>;

export function apiTokenRoutes(app: RestApp, deps: RestDeps): void {
  const { apiTokens } = deps.commands.accounts;

  resourceRoutes(app, {
    path: '/api/auth/tokens',
    what: 'API token',
    access: { read: 'anyone', write: 'anyone' },
    names: { one: 'ApiToken', many: 'ApiTokens' },
    summaries: {
      list: 'List API tokens',
      create: 'Create an API token; its text is shown only once',
      get: 'Get an API token',
      remove: 'Delete an API token',
    },
    details: {
      list: "The caller's own; an admin gets those of all users. Expired ones stay in the list for 30 days.",
      create:
        "A role above the caller's is a 403. With an Idempotency-Key, a repeat answers with the current token, without its text. An API token cannot create another: that is a 403.",
      get: "Another user's is a 404, unless an admin asks.",
      remove:
        'Every live instance refuses it before the answer. An API token may delete only itself; another one is a 403.',
    },
    shape: {},
    bodies: { create: newApiToken },
    inFile: null,
    schema: apiTokenSchema,
    createdSchema,
    filters: { user_id: uuid.optional().meta({ description: 'Only those of this user', examples: [sample.user] }) },
    list: (paged, { user_id: userId }, request) =>
      apiTokens.list(callerOf(request), { ...paged, userId: userId as string | undefined }),
    get: (id, request) => apiTokens.get(callerOf(request), id),
    create(context, _definition, checked, request) {
      const { name: called, role: asked, from = [], expires_in_days = days.default } = checked as Body;
      return apiTokens.create(context, callerOf(request), { name: called, role: asked, from, expires_in_days });
    },
    createdView: ({ apiToken, token }) => ({ ...apiToken, token }),
    // The text itself is not stored.
    repeated: { token: null },
    remove: (context, id, ifMatch, request) => apiTokens.remove(context, callerOf(request), id, ifMatch),
  });
}

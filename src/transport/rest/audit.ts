/** The list of audit entries. Their revert is in `revert.ts`. Implements `docs/contract/rest.md#audit`. */
import { z } from 'zod';
import { auditedTypes } from '../../domain/audit/types.js';
import { auditVerbs } from '../../domain/resource/audit-change.js';
import { timestamp } from '../../kernel/clock.js';
import type { Json } from '../../kernel/json.js';
import type { AuditEntry } from '../../projections/port.js';
import { callerOf } from './consistency.js';
import type { RestApp, RestDeps } from './deps.js';
import { answers, ok, pageOf } from './envelope.js';
import { canonical } from './fields.js';
import { readHeaders } from './headers.js';
import { pageOfQuery, paging, query, queryText } from './query.js';
import { expected } from './validation.js';
import { time } from './shared-schemas.js';

const rfc3339 = z.iso.datetime({ offset: true });

const instant = canonical('a time such as 2030-01-31T12:00:00.000Z', (value) => {
  // RFC 3339 allows lower-case letters; zod and `Date.parse` do not accept all of them.
  const parsed = rfc3339.safeParse(value.toUpperCase());
  return parsed.success ? timestamp(Date.parse(parsed.data)) : undefined;
});

const listQuerystring = query({
  ...paging,
  resource_type: z
    .enum(auditedTypes, { error: expected(`one of ${auditedTypes.join(', ')}`) })
    .optional()
    .meta({ description: 'Only entries about resources of this type' }),
  resource_id: queryText
    .optional()
    .meta({ description: 'Only entries about this resource', examples: ['1f0c3f5e-6d0c-4f0b-9a55-3c1f0e6b7a10'] }),
  actor: queryText.optional().meta({ description: 'Only entries of this actor: id or user name', examples: ['admin'] }),
  action: canonical(`<resource_type>.<verb>, the verb one of ${auditVerbs.join(', ')}`, (value) => {
    const [type, verb, ...more] = value.split('.');
    const valid = auditedTypes.includes(type ?? '') && auditVerbs.some((one) => one === verb) && more.length === 0;
    return valid ? value : undefined;
  })
    .optional()
    .meta({ description: 'Only entries of this action, `<resource_type>.<verb>`', examples: ['l4_chain.deploy'] }),
  from: instant.optional().meta({ description: 'Only entries of this time or later' }),
  to: instant.optional().meta({ description: 'Only entries of this time or earlier' }),
});

const named = { id: z.string().nullable(), name: z.string().nullable() };
const json = z.unknown() as z.ZodType<Json>;

export const entrySchema: z.ZodType<AuditEntry> = z
  .object({
    id: z.string(),
    at: time,
    actor: z.object({ type: z.enum(['user', 'agent', 'system']), ...named }),
    action: z.string(),
    resource: z.object({ type: z.string(), ...named }),
    changes: z.array(z.object({ path: z.string(), before: json, after: json })),
    request_id: z.string(),
    position: z.string().meta({ description: '`stream@revision`' }),
    revertible: z.boolean(),
    not_revertible_because: z.string().nullable(),
    reverts: z.string().nullable(),
    reverted_by: z.string().nullable(),
  })
  .meta({ id: 'AuditEntry' });

export function auditRoutes(app: RestApp, deps: RestDeps): void {
  app.route({
    method: 'GET',
    url: '/api/audit',
    config: { access: 'anyone', takes: 'none' },
    schema: {
      operationId: 'listAuditEntries',
      summary: 'List audit entries, newest first',
      description:
        'Secrets are masked. Entries about users and sign-ins are shown to admins only. Both ends of `from` and `to` count.',
      tags: ['audit'],
      querystring: listQuerystring,
      headers: readHeaders,
      response: answers(pageOf(entrySchema)),
    },
    handler: async (request) => {
      const { page, pageSize } = pageOfQuery(request.query);
      const { resource_type, resource_id, actor, action, from, to } = request.query;
      const { items, total } = await deps.projections.audit.list({
        page,
        pageSize,
        resourceType: resource_type,
        resourceId: resource_id,
        actor,
        action,
        from,
        to,
        includeAccounts: callerOf(request).role === 'admin',
      });
      return ok({ items, total, page, page_size: pageSize });
    },
  });
}

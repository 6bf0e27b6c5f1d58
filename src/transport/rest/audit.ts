/** The audit list. Reverting an entry is not offered yet. Implements `docs/contract/rest.md#audit`. */
import { z } from 'zod';
import { auditedTypes } from '../../domain/audit/types.js';
import { auditVerbs } from '../../domain/resource/audit-change.js';
import { timestamp } from '../../kernel/clock.js';
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
  // RFC 3339 allows lower-case letters, which neither zod nor `Date.parse` takes everywhere.
  const parsed = rfc3339.safeParse(value.toUpperCase());
  return parsed.success ? timestamp(Date.parse(parsed.data)) : undefined;
});

const listQuerystring = query({
  ...paging,
  resource_type: z.enum(auditedTypes, { error: expected(`one of ${auditedTypes.join(', ')}`) }).optional(),
  resource_id: queryText.optional(),
  actor: queryText.optional().meta({ description: 'Id or user name' }),
  action: canonical(`<resource_type>.<verb>, the verb one of ${auditVerbs.join(', ')}`, (value) => {
    const [type, verb, ...more] = value.split('.');
    const known = auditedTypes.includes(type ?? '') && auditVerbs.some((one) => one === verb);
    return known && more.length === 0 ? value : undefined;
  }).optional(),
  from: instant.optional(),
  to: instant.optional(),
});

const named = { id: z.string().nullable(), name: z.string().nullable() };

const entry = z
  .object({
    id: z.string(),
    at: time,
    actor: z.object({ type: z.enum(['user', 'agent', 'system']), ...named }),
    action: z.string(),
    resource: z.object({ type: z.string(), ...named }),
    changes: z.array(z.object({ path: z.string(), before: z.unknown(), after: z.unknown() })),
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
      summary: 'List audit entries, newest first',
      tags: ['audit'],
      querystring: listQuerystring,
      headers: readHeaders,
      response: answers(pageOf(entry)),
    },
    handler: async (request) => {
      const { page, pageSize } = pageOfQuery(request.query);
      const asked = request.query;
      const { items, total } = await deps.projections.audit.list({
        page,
        pageSize,
        resourceType: asked.resource_type,
        resourceId: asked.resource_id,
        actor: asked.actor,
        action: asked.action,
        from: asked.from,
        to: asked.to,
        includeAccounts: callerOf(request).role === 'admin',
      });
      return ok({ items: items.map(view), total, page, page_size: pageSize });
    },
  });
}

function view(one: AuditEntry): z.output<typeof entry> {
  return {
    ...one,
    actor: { ...one.actor },
    resource: { ...one.resource },
    changes: one.changes.map(({ path, before, after }) => ({ path, before, after })),
  };
}

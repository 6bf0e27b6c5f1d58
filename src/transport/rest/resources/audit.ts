/** Audit entries, and all changes of one. Their revert is in `revert.ts`. Implements `docs/contract/rest.md#audit`. */
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { auditedTypes, describeCommand } from '../../../domain/audit/describe.js';
import { auditVerbs } from '../../../domain/resource/audit-change.js';
import { mayRead } from '../../../feed/filters.js';
import type { RecordedCommand } from '../../../kernel/event.js';
import { limits } from '../../../kernel/limits.js';
import type { AuditEntry, AuditQuery, StoredEntry } from '../../../projections/port.js';
import { orNotFound, pathId } from '../checks/path-id.js';
import { callerOf } from '../checks/consistency.js';
import type { RestApp, RestDeps } from '../deps.js';
import { answers, ok, pageOf } from '../answers/envelope.js';
import { canonical } from '../schemas/fields.js';
import {
  after,
  instant,
  newestAnswer,
  newestFirst,
  pageOfQuery,
  paging,
  query,
  queryText,
  someOf,
} from '../schemas/query.js';
import { component, documented, sample } from '../schemas/documented.js';
import { idOf, timeOf } from '../schemas/shared-schemas.js';

const listQuerystring = query({
  ...paging,
  after,
  resource_type: someOf(auditedTypes)
    .optional()
    .meta({ description: 'Only entries about resources of these types, comma-separated', examples: ['node,l4_chain'] }),
  not_resource_type: someOf(auditedTypes)
    .optional()
    .meta({ description: 'No entries about resources of these types, comma-separated', examples: ['session'] }),
  q: queryText.optional().meta({
    description: "Case-insensitive substring of the resource's name or the actor's at that time",
    examples: ['edge'],
  }),
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

/** What sentences call an entry. */
export const entryNoun = 'audit entry';

const named = (what: string, id: string, name: string) => ({
  id: documented(z.string().nullable(), `Id of ${what}; null when there is none`, id),
  name: documented(z.string().nullable(), 'Its name at that time', name),
});

/** The resource that an entry is about. */
export const auditedResource = component('AuditedResource', 'What was changed', {
  type: documented(z.string(), 'Type of the resource', 'l4_chain'),
  ...named('the resource', sample.chain, 'front'),
});

export const actorSchema = documented(
  component('AuditActor', 'Who did it', {
    type: documented(z.enum(['user', 'agent', 'system']), 'Kind of the actor', 'user'),
    ...named('the actor', sample.user, 'admin'),
  }),
  'Who did it',
);

/** A field of a change. */
export const auditChange = {
  path: documented(z.string(), 'JSON path of the field', 'hops[0].listen_port'),
  before: documented(z.unknown(), 'Its value before; null at a create', 443),
  after: documented(z.unknown(), 'Its value after; null at a delete', 8443),
};

const changedResource = documented(
  auditedResource.exactOptional(),
  'The resource that changed, in an entry about several resources',
);

/** The part of an entry that never changes. */
export const loggedEntry = {
  id: idOf("Id of the entry, the command's", sample.entry),
  at: timeOf('When'),
  actor: actorSchema,
  token: documented(
    component('AuditToken', 'The API token of a program, or the join token of a machine', {
      id: idOf('Id of the token', sample.entry),
      name: documented(z.string(), 'Its name at that time', 'ci'),
    }).nullable(),
    'The API token that the actor used, or the join token of a machine that joined; null for people',
    null,
  ),
  action: documented(z.string(), '`<resource type>.<verb>`', 'l4_chain.update'),
  resource: documented(auditedResource, 'What was changed'),
  changes: documented(
    z.array(component('AuditChange', 'A field that changed', { ...auditChange, resource: changedResource })),
    `The first fields that changed, at most ${limits.rest.changesShown}; secrets are masked`,
  ),
  changes_total: documented(z.int(), 'Number of all changes, which are at `/api/audit/{id}/changes`', 3),
  request_id: documented(z.string(), 'The `x-request-id` of the command', 'console-7f3a'),
  position: documented(z.string(), '`stream@revision` in the log', 'svc-fleet@1284'),
  reverts: documented(z.string().nullable(), 'The entry that this one undoes', null),
};

/** For a change that a person must confirm. */
export const confirm = documented(
  component('AuditConfirmation', 'The confirmation of a change by a person', {
    until: timeOf('When it is reverted unless somebody confirms it'),
    confirmed_at: documented(timeOf('When').nullable(), 'When it was confirmed; null before', null),
    confirmed_by: documented(actorSchema.nullable(), 'Who confirmed it; null before', null),
    error: documented(z.string().nullable(), 'Why it could not be reverted in time', null),
  }).nullable(),
  'Of a change with `confirm=manual`; null of others',
  null,
);

export const entrySchema = component('AuditEntry', 'Who did what, and when', {
  ...loggedEntry,
  revertible: documented(z.boolean(), 'Whether it can be undone', true),
  not_revertible_because: documented(z.string().nullable(), 'Why it cannot; null if it can', null),
  reverted_by: documented(z.string().nullable(), 'The entry that undoes this one', null),
  confirm,
});

/** The part of the audit that the caller may read. */
function auditReader(request: FastifyRequest): Pick<AuditQuery, 'includeAccounts' | 'ownTokensOf'> {
  const { role, userId } = callerOf(request);
  return { includeAccounts: role === 'admin', ownTokensOf: userId };
}

/**
 * An entry that the caller is shown, and its command, undefined when its events are gone.
 * @throws ServiceError `not_found`
 */
export async function readableEntry(
  { fleet, projections }: RestDeps,
  request: FastifyRequest,
  id: string,
): Promise<{ readonly entry: AuditEntry; readonly command: RecordedCommand | undefined }> {
  const [entry, command] = await Promise.all([projections.audit.get(id), projections.auditTrail.command(id)]);
  const described = command === undefined ? null : describeCommand(command);
  const { role, userId } = callerOf(request);
  // Only entries of sign-ins outlive their events.
  const shown = mayRead({ readers: described?.readers ?? 'admins' }, { admin: role === 'admin', userId });
  return { entry: shownEntry({ fleet }, orNotFound(shown ? entry : undefined, entryNoun)), command };
}

/** A stored entry with what the fleet knows of its confirmation. */
export const shownEntry = ({ fleet }: Pick<RestDeps, 'fleet'>, entry: StoredEntry): AuditEntry => ({
  ...entry,
  confirm: fleet.confirmationOf(entry.id),
});

export function auditRoutes(app: RestApp, deps: RestDeps): void {
  app.get('/api/audit', {
    config: { access: 'anyone', takes: 'none', readsStored: true },
    schema: {
      operationId: 'listAuditEntries',
      summary: 'List audit entries, newest first',
      description:
        'Secrets are masked. Entries about users, sign-ins, webhooks and the API tokens of others are shown to admins only. Both ends of `from` and `to` count.',
      querystring: listQuerystring,
      response: answers(pageOf(entrySchema)),
    },
    handler: async (request) => {
      const { resource_type, not_resource_type, q, resource_id, actor, action, from, to } = request.query;
      const list = await deps.projections.audit.list({
        ...newestFirst(request.query),
        resourceTypes: resource_type,
        notResourceTypes: not_resource_type,
        q,
        resourceId: resource_id,
        actor,
        action,
        from,
        to,
        ...auditReader(request),
      });
      const items = list.items.map((entry) => shownEntry(deps, entry));
      return ok(newestAnswer(request.query, { ...list, items }));
    },
  });
  app.get('/api/audit/:id', {
    config: { access: 'anyone', takes: 'none', readsStored: true },
    schema: {
      operationId: 'getAuditEntry',
      summary: 'Get an audit entry',
      description: 'As it is in the list. One that the caller may not see is not found.',
      response: answers(entrySchema),
    },
    handler: async (request) => ok((await readableEntry(deps, request, pathId(request.params, entryNoun))).entry),
  });
  app.get('/api/audit/:id/changes', {
    config: { access: 'anyone', takes: 'none', readsStored: true },
    schema: {
      operationId: 'listAuditChanges',
      summary: 'List all changes of an audit entry',
      description: 'Each with the resource that it is of. Secrets are masked.',
      querystring: query(paging),
      response: answers(
        pageOf(
          component('AuditResourceChange', 'A field that changed, and of what', {
            ...auditChange,
            resource: documented(auditedResource, 'What the change is of'),
          }),
        ),
      ),
    },
    handler: async (request) => {
      const id = pathId(request.params, entryNoun);
      await readableEntry(deps, request, id);
      const { page, pageSize } = pageOfQuery(request.query);
      const { items, total } = orNotFound(await deps.projections.audit.changes(id, { page, pageSize }), entryNoun);
      return ok({ items, total, page, page_size: pageSize });
    },
  });
}

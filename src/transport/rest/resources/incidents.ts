/**
 * Incidents: from when something went wrong until it recovered. Implements
 * `docs/contract/notices.md#status-changes-are-facts`.
 */
import { z } from 'zod';
import { openIncident } from '../../../domain/status/ledger.js';
import { statusTypes, type StatusKey } from '../../../domain/status/status.js';
import type { StoredIncident } from '../../../projections/port.js';
import { answers, ok, pageOf } from '../answers/envelope.js';
import type { RestApp, RestDeps } from '../deps.js';
import { component, documented, sample } from '../schemas/documented.js';
import { after, instant, newestAnswer, newestFirst, paging, query, queryText } from '../schemas/query.js';
import { readHeaders } from '../schemas/headers.js';
import { idOf, statusResource, timeOf } from '../schemas/shared-schemas.js';
import { expected } from '../schemas/validation.js';

const querystring = query({
  ...paging,
  after,
  resource_type: z
    .enum(statusTypes, { error: expected(`one of ${statusTypes.join(', ')}`) })
    .optional()
    .meta({ description: 'Only incidents of resources of this type' }),
  resource_id: queryText.optional().meta({ description: 'Only incidents of this resource', examples: [sample.chain] }),
  open: z
    .literal('true', { error: expected('true') })
    .optional()
    .meta({ description: 'Only incidents that last' }),
  from: instant.optional().meta({ description: 'Only incidents that lasted at this time or later' }),
  to: instant.optional().meta({ description: 'Only incidents that began at this time or earlier' }),
});

const nullableText = z.string().nullable();
const incidentSchema = component('Incident', 'From when something went wrong until it was well again', {
  id: idOf('Id of the incident, of its first fact', sample.entry),
  resource: documented(statusResource, 'What went wrong'),
  status: documented(z.string(), 'The worst status so far', 'down'),
  began_at: timeOf('When it began'),
  ended_at: documented(nullableText, 'When it ended; null while it lasts', null),
  reason: documented(nullableText, 'Why, when it was worst', 'upstream "web" is unhealthy, as "relay-1" reports'),
  duration_secs: documented(z.number(), 'How long it lasted, or has lasted so far', 250.5),
});

/** An incident is over as soon as the ledger says so: its last fact follows the command, the read model later. */
function incidentView(incident: StoredIncident, { statusLedger, clock }: Pick<RestDeps, 'statusLedger' | 'clock'>) {
  const { id, resource, status, reason, began_at } = incident;
  const key = resource as StatusKey & { readonly name: string };
  const last = statusLedger.last(key);
  const ended_at = incident.ended_at ?? (last?.incident?.id === id && openIncident(last) === null ? last.since : null);
  const end = ended_at === null ? clock.now() : Date.parse(ended_at);
  const duration_secs = Math.max(0, (end - Date.parse(began_at)) / 1000);
  return { id, resource: key, status, began_at, ended_at, reason, duration_secs };
}

export function incidentRoutes(app: RestApp, deps: RestDeps): void {
  app.get('/api/incidents', {
    config: { access: 'anyone', takes: 'none', readsStored: true },
    schema: {
      operationId: 'listIncidents',
      summary: 'List incidents, newest first',
      description:
        'With `from` and `to`: those that lasted at some time between both. Kept for 90 days after their end.',
      querystring,
      headers: readHeaders,
      response: answers(pageOf(incidentSchema)),
    },
    handler: async (request) => {
      const { resource_type, resource_id, open, from, to } = request.query;
      const { items, total, ...rest } = await deps.projections.incidents.list({
        ...newestFirst(request.query),
        resourceType: resource_type,
        resourceId: resource_id,
        isOpen: open === 'true',
        from,
        to,
      });
      const views = items
        .map((incident) => incidentView(incident, deps))
        .filter(({ ended_at }) => open !== 'true' || ended_at === null);
      return ok(newestAnswer(request.query, { items: views, total: total - (items.length - views.length), ...rest }));
    },
  });
}

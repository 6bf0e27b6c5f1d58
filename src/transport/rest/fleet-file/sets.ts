/**
 * The routes of sets: list them, show drift (manual changes since the last apply), and release one. Implements
 * `docs/contract/automation.md#the-fleet-as-a-file`.
 */
import { z } from 'zod';
import { changeWithNames, noReferences } from '../../../domain/fleet-file/naming.js';
import { nfc } from '../../../kernel/compare-text.js';
import { ServiceError } from '../../../kernel/errors.js';
import { answers, ok } from '../answers/envelope.js';
import { commandContext } from '../checks/consistency.js';
import type { RestApp, RestDeps } from '../deps.js';
import { component, documented, sample } from '../schemas/documented.js';
import { actorSchema, entrySchema } from '../resources/audit.js';
import { writtenEntries } from '../resources/written-entry.js';
import { changersOf } from './drift-entries.js';
import type { Sections } from './sections.js';

const setsSchema = component('FleetSets', 'The sets', {
  items: documented(
    z.array(
      component('FleetSet', 'A set: the resources of one document', {
        set: documented(z.string(), 'Its name', 'edge-eu'),
        resources: documented(z.record(z.string(), z.int()), 'Number of its resources, by type', {
          node: 2,
        }),
        applied_at: documented(
          z.string().nullable(),
          'When its document was last applied; null when that was reverted',
          sample.time,
        ),
        actor: documented(actorSchema.nullable(), 'Who applied it'),
        document_sha256: documented(
          z.string().nullable(),
          'SHA-256 of that document, in hexadecimal digits',
          '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
        ),
        drift: documented(z.int(), 'Number of resources that differ from the last apply', 0),
      }),
    ),
    'By name',
  ),
});

const driftSchema = component('FleetDrift', 'Manual changes of a set', {
  items: documented(
    z.array(
      component('FleetDriftItem', 'A resource that was changed manually', {
        resource: documented(
          component('FleetDriftResource', 'A resource of the set', {
            type: documented(z.string(), 'Type of the resource', 'l4_upstream'),
            id: documented(z.string(), 'Its id', sample.upstream),
            name: documented(z.string(), 'Its name, or the last one if it is deleted', 'web'),
          }),
          'The resource that changed',
        ),
        changes: documented(
          z.array(
            component('FleetDriftChange', 'A field that was changed manually', {
              path: documented(
                z.string(),
                'JSON path; `deployed.` begins fields of the deployed definition',
                'endpoint',
              ),
              applied: documented(z.unknown(), 'Its value after the apply', '203.0.113.5:443'),
              now: documented(z.unknown(), 'Its current value; null when the resource is deleted', '203.0.113.9:443'),
              entry_id: documented(
                z.string().nullable(),
                'The newest audit entry that changed it; null while the audit is unavailable, and after the first 500 resources',
                sample.entry,
              ),
            }),
          ),
          'The fields, with names in place of ids; secrets are left out',
        ),
      }),
    ),
    'By type and name; empty without manual changes',
  ),
});

const releasedSchema = component('FleetReleased', 'A released set', {
  commands: documented(z.array(entrySchema), 'The audit entries; one, unless the set is large'),
});

const setParams = z.object({
  set: z
    .string()
    .overwrite(nfc)
    .meta({ description: 'Name of the set', examples: ['edge-eu'] }),
});

const unknownSet = (): ServiceError => new ServiceError('not_found', 'no set has this name');

export function setRoutes(app: RestApp, deps: RestDeps, sections: Sections): void {
  app.get('/api/fleet/sets', {
    config: { access: 'anyone', takes: 'none' },
    schema: {
      operationId: 'listFleetSets',
      summary: 'List the sets, with the drift of each',
      description:
        'A set exists while it owns resources or a document of it was applied. Resources that no set owns are not listed.',
      response: answers(setsSchema),
    },
    handler: async () =>
      ok({
        items: (await deps.fleet.sets()).map(({ set, resources, base, drift }) => ({
          set,
          resources,
          applied_at: base?.at ?? null,
          actor: base?.actor ?? null,
          document_sha256: base?.document_sha256 ?? null,
          drift,
        })),
      }),
  });

  app.get('/api/fleet/sets/:set/drift', {
    config: { access: 'anyone', takes: 'none', readsStored: true },
    schema: {
      operationId: 'getFleetSetDrift',
      summary: 'Get the manual changes of a set since its last apply',
      description:
        'Edits, deletions and deploys that still make a difference. PSKs, refreshes, reports of agents, and fields and resources that the document omits do not count.',
      params: setParams,
      response: answers(driftSchema),
    },
    handler: async (request) => {
      const { set } = request.params;
      const base = deps.fleet.base(set);
      const drift = await deps.fleet.drift(set);
      if (drift === undefined) throw unknownSet();
      const entries = await changersOf(deps, base, drift);
      const nameOf = (type: string, id: string): string => deps.fleet.nameOf(type, id) ?? id;
      return ok({
        items: drift.map(({ resource, changes }, index) => {
          const references = sections.referenceFields.get(resource.type) ?? noReferences;
          return {
            resource,
            changes: changes.map((change) => {
              const { path, before, after } = changeWithNames(change, references, nameOf);
              return { path, applied: before, now: after, entry_id: entries[index]?.get(change.path) ?? null };
            }),
          };
        }),
      });
    },
  });

  app.post('/api/fleet/sets/:set/release', {
    config: { access: 'operator', takes: 'none' },
    schema: {
      operationId: 'releaseFleetSet',
      summary: 'Release a set',
      description: 'Its resources stay and then belong to no set; nothing else changes. It can be reverted.',
      params: setParams,
      response: answers(releasedSchema),
    },
    handler: async (request, reply) => {
      const { commands, position } = await deps.commands.fleetFile.release(commandContext(request), request.params.set);
      void reply.header('x-position', String(position));
      return ok({ commands: await writtenEntries(deps, commands) });
    },
  });
}

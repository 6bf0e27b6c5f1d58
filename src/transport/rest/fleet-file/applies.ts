/** The routes of past applies: get one, revert it. Implements `docs/contract/automation.md#the-fleet-as-a-file`. */
import { z } from 'zod';
import { answers, ok } from '../answers/envelope.js';
import { objectInPieces, sendPieces } from '../answers/streamed-json.js';
import { commandContext } from '../checks/consistency.js';
import { orNotFound, pathId } from '../checks/path-id.js';
import type { RestApp, RestDeps } from '../deps.js';
import { component, documented } from '../schemas/documented.js';
import { entrySchema } from '../resources/audit.js';
import { dryRunQuery } from '../resources/revert.js';
import { previewFields, rolledOutSchema } from '../checks/rolled-out.js';
import { writtenEntries } from '../resources/written-entry.js';
import { page, query } from '../schemas/query.js';
import { pastApplySchema, pastApplyView } from './apply-view.js';
import type { Sections } from './sections.js';

const what = 'apply';

const revertedSchema = component('FleetReverted', 'The result of reverting an apply', {
  commands: documented(z.array(entrySchema), 'The new entries; with `dry_run=true` a preview of them'),
  not_reverted: documented(z.array(entrySchema), 'Entries of the apply that cannot be reverted'),
  waves: previewFields.waves.exactOptional(),
});

export function applyRoutes(app: RestApp, deps: RestDeps, sections: Sections): void {
  app.get('/api/fleet/applies/:id', {
    config: { access: 'anyone', takes: 'none', readsStored: true },
    schema: {
      operationId: 'getFleetApply',
      summary: 'Get a past apply',
      description:
        'The answer of the apply, without its PSKs, with its set and whether it was reverted. `page` gives further pages of its steps.',
      querystring: query({ page }),
      response: answers(pastApplySchema),
    },
    handler: async (request, reply) => {
      const apply = orNotFound(await deps.commands.fleetFile.find(pathId(request.params, what)), what);
      return sendPieces(reply, objectInPieces(await pastApplyView(deps, sections, apply, request.query.page)));
    },
  });

  app.post('/api/fleet/applies/:id/revert', {
    config: { access: 'operator', takes: 'none', mayOnlyLook: true, readsStored: true, rollsOut: 'shown by itself' },
    schema: {
      operationId: 'revertFleetApply',
      summary: 'Revert an apply',
      description:
        'Undoes its commands, newest first, by the rules of reverts; the result is checked as a whole. Key rotations stay. Ownership and the base of drift are restored too. A 409 names every obstacle. With `dry_run=true`, nothing is written.',
      querystring: dryRunQuery,
      response: answers(rolledOutSchema(revertedSchema)),
    },
    handler: async (request, reply) => {
      const id = pathId(request.params, what);
      const dryRun = request.query.dry_run === 'true';
      const outcome = await deps.commands.fleetFile.revert(commandContext(request), id, dryRun);
      const { commands, notReverted, position } = outcome;
      if (!dryRun) void reply.header('x-position', String(position));
      return ok({
        commands: await writtenEntries(deps, commands),
        not_reverted: await writtenEntries(deps, notReverted),
      });
    },
  });
}

/**
 * The revert of an audit entry, its preview, and the confirmation of a change that is reverted unless confirmed in
 * time. The rules are in `src/domain/revert`. Implements `docs/contract/rest.md#audit` and
 * `docs/contract/domain.md#audit-and-revert`.
 */
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { RevertHandlers } from '../../../commands/handlers-port.js';
import type { CommandOutcome } from '../../../commands/port.js';
import { notRevertible } from '../../../domain/aggregate/reverts.js';
import { describeCommand } from '../../../domain/audit/describe.js';
import { ServiceError } from '../../../kernel/errors.js';
import { streams, type RecordedCommand } from '../../../kernel/event.js';
import type { AuditEntry } from '../../../projections/port.js';
import { auditChange, auditedResource, entryNoun, entrySchema, readableEntry, shownEntry } from './audit.js';
import { commandContext, commandOf, setCommandHeaders } from '../checks/consistency.js';
import type { RestApp, RestDeps } from '../deps.js';
import { answers, ok } from '../answers/envelope.js';
import { pathId } from '../checks/path-id.js';
import { query } from '../schemas/query.js';
import { component, documented, sample } from '../schemas/documented.js';
import { idOf } from '../schemas/shared-schemas.js';
import { writtenEntry } from './written-entry.js';
import { dryRun, previewFields, rolledOutSchema } from '../checks/rolled-out.js';

const previewSchema = component('RevertPreview', 'What a revert would change, with `dry_run=true`', {
  entry_id: idOf('Id of the entry that would be undone', sample.entry),
  changes: documented(
    z.array(
      component('RevertChange', 'A field that a revert would change', {
        resource: documented(auditedResource, 'What would be changed'),
        ...auditChange,
      }),
    ),
    'What the revert would change',
  ),
  ...previewFields,
});

export const dryRunQuery = query({ dry_run: dryRun.meta({ description: 'With `true`, nothing is written' }) });

export function revertRoutes(app: RestApp, deps: RestDeps): void {
  confirmRoute(app, deps);
  app.post('/api/audit/:id/revert', {
    config: { access: 'operator', takes: 'none', mayOnlyLook: true, readsStored: true, rollsOut: 'shown by itself' },
    schema: {
      operationId: 'revertAuditEntry',
      summary: 'Revert an audit entry',
      description:
        'Undoes the changes of the entry in a new entry, and answers with it. A 409 names each field that was changed since, with ' +
        'the entry that changed it, and any other obstacle. With `dry_run=true` it answers with the changes and writes nothing.',
      querystring: dryRunQuery,
      response: answers(
        z
          .union([rolledOutSchema(entrySchema, 'RevertingEntry'), previewSchema])
          .meta({ description: 'The new entry, or what it would change' }),
      ),
    },
    handler: async (request, reply) => {
      const id = pathId(request.params, entryNoun);
      const command = await commandToRevert(deps, request, id);
      const handlers = handlersOf(deps, command);
      if (request.query.dry_run === 'true') {
        return ok({ entry_id: id, changes: await handlers.preview(command, commandContext(request)) });
      }
      const outcome = await handlers.revert(commandContext(request), command);
      setCommandHeaders(reply, outcome);
      return ok(entryOf(deps, outcome));
    },
  });
}

/** Confirms a change before it is taken back. */
function confirmRoute(app: RestApp, deps: RestDeps): void {
  app.post('/api/audit/:id/confirm', {
    config: { access: 'operator', takes: 'none', readsStored: true },
    schema: {
      operationId: 'confirmAuditEntry',
      summary: 'Confirm the change of an audit entry',
      description:
        'Keeps a change that was made with `confirm=manual`, and answers with its entry. A 409 for one that waits for nobody.',
      response: answers(entrySchema),
    },
    handler: async (request, reply) => {
      const id = pathId(request.params, entryNoun);
      const { entry } = await readableEntry(deps, request, id);
      setCommandHeaders(reply, await deps.commands.rollouts.confirm(commandContext(request), id));
      return ok(shownEntry(deps, entry));
    },
  });
}

/** @throws ServiceError `not_found`, also for an entry that the caller is not shown; `conflict` when its events are gone */
async function commandToRevert(deps: RestDeps, request: FastifyRequest, id: string): Promise<RecordedCommand> {
  const { entry, command } = await readableEntry(deps, request, id);
  if (command !== undefined) return command;
  throw refused(entry.not_revertible_because ?? 'its events are gone');
}

/** @throws ServiceError `conflict` when the entry's stream has no reverts */
function handlersOf({ commands }: RestDeps, command: RecordedCommand): RevertHandlers {
  switch (command.stream) {
    case streams.fleet:
      return commands.reverts.fleet;
    case streams.accounts:
      return commands.reverts.accounts;
    default:
      throw refused(describeCommand(command)?.notRevertibleBecause ?? 'it is a fact');
  }
}

function refused(because: string): ServiceError {
  const { code, message } = notRevertible(because);
  return new ServiceError(code, message);
}

/** The new entry, or the current one for a repeat. */
function entryOf(deps: RestDeps, outcome: CommandOutcome<{ readonly name: string | null }>): AuditEntry {
  const command = commandOf(outcome);
  if (command === undefined) throw new Error('a revert always changes something');
  return writtenEntry(deps, command, outcome.kind === 'done' ? outcome.result.name : null);
}

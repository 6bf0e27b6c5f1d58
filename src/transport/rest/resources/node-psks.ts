/** The routes of a node's PSKs. Implements `docs/contract/rest.md#nodes` and `docs/contract/rollouts.md#guided-rotation`. */
import { z } from 'zod';
import type { CommandOutcome } from '../../../commands/port.js';
import { ServiceError } from '../../../kernel/errors.js';
import { limits } from '../../../kernel/limits.js';
import { answers, ok } from '../answers/envelope.js';
import { commandContext, setCommandHeaders } from '../checks/consistency.js';
import { orNotFound, pathId } from '../checks/path-id.js';
import type { RestApp, RestDeps } from '../deps.js';
import { component, documented } from '../schemas/documented.js';
import { query, queryInteger } from '../schemas/query.js';
import { nodeId } from '../schemas/shared-schemas.js';
import { expected } from '../schemas/validation.js';
import { candidateOf, candidateSchema, exampleFingerprint } from './node-view.js';

export const controlPsk = documented(
  z.string().nullable(),
  "The secret of the node's agent, shown only once; null for a repeat, or if none was issued",
  'svcpsk1_…',
);

const pskSchema = component('NodePsk', 'The new PSK', {
  node_id: nodeId,
  control_psk: controlPsk,
  psk_fingerprint: documented(z.string().nullable(), 'Fingerprint of the new PSK', exampleFingerprint),
  sessions_ended: documented(z.boolean(), 'Whether all sessions of the old PSK have ended on every instance', true),
});

const issuedCandidate = component('NodePskCandidate', 'A second PSK, valid beside the first', {
  node_id: nodeId,
  control_psk: controlPsk,
  psk_candidate: candidateSchema,
});

const { max, default: usual } = limits.rest.candidateDays;

/** Waits until no session of a revoked node is left on any instance. */
export function sessionsEnded(deps: RestDeps, id: string, outcome: CommandOutcome<unknown>): Promise<boolean> {
  const revision = outcome.kind === 'done' ? outcome.events.at(-1)?.revision : undefined;
  return deps.sessionsEnded(id, limits.agent.sessionsEndedWaitMs, revision);
}

export function nodePskRoutes(app: RestApp, deps: RestDeps): void {
  const { nodes } = deps.commands;

  app.post('/api/nodes/:id/psk', {
    config: { access: 'operator', takes: 'none', refuses: ['conflict'] },
    schema: {
      operationId: 'resetNodePsk',
      summary: 'Replace the PSK, which is shown only once, and end sessions with the old one; or issue a second one',
      description:
        'Without `mode`, the old PSK, a candidate and their sessions end on every live instance before the answer; `sessions_ended` is false if that took longer than two seconds. With `mode=candidate` the new PSK is valid beside the old one, which ends once an agent has proven a session under the new one; it replaces an earlier candidate. A node without a PSK is then a 409. A repeat has `control_psk: null`.',
      querystring: query({
        mode: z
          .literal('candidate', { error: expected('candidate') })
          .optional()
          .meta({ description: 'Issue a second PSK beside the first' }),
        valid_days: queryInteger(1, max, 'After how many days an unused candidate expires')
          .optional()
          .meta({ default: usual }),
      }),
      response: answers(
        documented(z.union([pskSchema, issuedCandidate]), 'The new PSK, or the candidate with `mode=candidate`'),
      ),
    },
    handler: async (request, reply) => {
      const id = pathId(request.params, 'node');
      const { mode, valid_days: days = usual } = request.query;
      if (mode === undefined && request.query.valid_days !== undefined) {
        throw new ServiceError('invalid_request', 'valid_days: expected together with mode=candidate');
      }
      const context = commandContext(request);
      const outcome = await (mode === undefined
        ? nodes.issuePsk(context, id)
        : nodes.issueCandidate(context, id, days));
      setCommandHeaders(reply, outcome);
      const node = orNotFound(deps.fleet.node(outcome.kind === 'repeated' ? outcome.resourceId : id), 'node');
      const control_psk = outcome.kind === 'repeated' ? null : outcome.result.controlPsk;
      const shown = { node_id: node.id, control_psk };
      if (mode !== undefined) return ok({ ...shown, psk_candidate: candidateOf(node, deps.clock.now()) });
      const sessions_ended = await sessionsEnded(deps, id, outcome);
      return ok({ ...shown, psk_fingerprint: node.psk?.fingerprint ?? null, sessions_ended });
    },
  });

  app.delete('/api/nodes/:id/psk/candidate', {
    config: { access: 'operator', takes: 'none' },
    schema: {
      operationId: 'deleteNodePskCandidate',
      summary: 'Take back the candidate of the PSK',
      description: 'A node without one, or whose candidate has expired, is a 404.',
      response: answers(z.object({}).meta({ description: 'Nothing' })),
    },
    handler: async (request, reply) => {
      const id = pathId(request.params, 'node');
      setCommandHeaders(reply, await nodes.dropCandidate(commandContext(request), id, request.headers['if-match']));
      return ok({});
    },
  });
}

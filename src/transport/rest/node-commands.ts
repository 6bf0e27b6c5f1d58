/** Commands to a node's agent, sent with the answer to its next heartbeat. Implements `docs/contract/rest.md#nodes` (`/commands`). */
import { z } from 'zod';
import type { AgentCommand } from '../../domain/node/node.js';
import { agentCommandNames } from '../../domain/node/node.js';
import { commandContext, found, settle } from './consistency.js';
import type { RestApp, RestDeps } from './deps.js';
import { answers, ok } from './envelope.js';
import { body, oneOf } from './fields.js';
import { postHeaders } from './headers.js';
import { idParams, pathId } from './ids.js';
import { noQuery } from './query.js';

const queued = z
  .object({ id: z.string(), command: z.enum(agentCommandNames), state: z.literal('queued'), expires_at: z.string() })
  .meta({ id: 'AgentCommand' });

export function nodeCommandRoutes(app: RestApp, deps: RestDeps): void {
  app.route({
    method: 'POST',
    url: '/api/nodes/:id/commands',
    config: { access: 'operator', takes: 'json' },
    schema: {
      summary: 'Queue a command for the agent; it expires after ten minutes',
      tags: ['nodes'],
      params: idParams,
      querystring: noQuery,
      headers: postHeaders,
      body: body({ command: oneOf(agentCommandNames) }),
      response: answers(queued),
    },
    handler: async (request, reply) => {
      const id = pathId(request.params, 'node');
      const outcome = await deps.commands.nodes.command(commandContext(request), id, request.body.command);
      settle(reply, outcome);
      const command =
        outcome.kind === 'done' ? outcome.result : await repeated(deps, outcome.resourceId, outcome.commandId);
      return ok({ id: command.id, command: command.command, state: 'queued' as const, expires_at: command.expires_at });
    },
  });
}

/** The command that the first use of an idempotency key queued; gone once it has expired. */
async function repeated(deps: RestDeps, nodeId: string, requestedBy: string): Promise<AgentCommand> {
  const { node } = found(await deps.projections.nodes.get(nodeId), 'node');
  return found(
    node.commands.find((command) => command.id === requestedBy),
    'command',
  );
}

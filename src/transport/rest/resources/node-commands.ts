/** Commands to a node's agent, sent with the answer to its next heartbeat. Implements `docs/contract/rest.md#nodes`. */
import { z } from 'zod';
import type { AgentCommand } from '../../../domain/node/node.js';
import { agentCommandNames } from '../../../domain/node/node.js';
import { commandContext, setCommandHeaders } from '../checks/consistency.js';
import type { RestApp, RestDeps } from '../deps.js';
import { answers, ok } from '../answers/envelope.js';
import { body, oneOf } from '../schemas/fields.js';
import { postHeaders } from '../schemas/headers.js';
import { idParams, orNotFound, pathId } from '../checks/path-id.js';
import { noQuery } from '../schemas/query.js';
import { documented, sample } from '../openapi/openapi-text.js';
import { idOf, timeOf } from '../schemas/shared-schemas.js';

const queued = z
  .object({
    id: idOf('Id of the command', sample.command),
    command: documented(z.enum(agentCommandNames), 'What the agent is to do', 'RELOAD_CONFIG'),
    state: documented(z.literal('queued'), 'It waits for the next heartbeat'),
    expires_at: timeOf('When it is given up', sample.later),
  })
  .meta({ id: 'AgentCommand', description: 'A command that waits for its agent' });

const newCommand = body({
  command: documented(oneOf(agentCommandNames), 'What the agent is to do', 'RELOAD_CONFIG'),
}).meta({ id: 'NewAgentCommand', description: 'A command to an agent' });

export function nodeCommandRoutes(app: RestApp, deps: RestDeps): void {
  app.route({
    method: 'POST',
    url: '/api/nodes/:id/commands',
    config: { access: 'operator', takes: 'json' },
    schema: {
      operationId: 'queueNodeCommand',
      summary: 'Queue a command for the agent; it expires after ten minutes',
      description: 'The agent gets the command with the answer to its next heartbeat.',
      tags: ['nodes'],
      params: idParams,
      querystring: noQuery,
      headers: postHeaders,
      body: newCommand,
      response: answers(queued),
    },
    handler: async (request, reply) => {
      const id = pathId(request.params, 'node');
      const outcome = await deps.commands.nodes.command(commandContext(request), id, request.body.command);
      setCommandHeaders(reply, outcome);
      const command =
        outcome.kind === 'done' ? outcome.result : await queuedBefore(deps, outcome.resourceId, outcome.commandId);
      return ok({ ...command, state: 'queued' as const });
    },
  });
}

/** The agent command that an earlier use of the idempotency key queued. Once it has expired, it is a 404. */
async function queuedBefore(deps: RestDeps, nodeId: string, id: string): Promise<AgentCommand> {
  const node = orNotFound(deps.fleet.node(nodeId), 'node');
  return orNotFound(
    node.commands.find((command) => command.id === id),
    'command',
  );
}

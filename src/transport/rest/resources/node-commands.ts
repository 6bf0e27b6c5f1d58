/**
 * Commands to a node's agent, sent with the answer to its next heartbeat, and what became of them.
 * Implements `docs/contract/rest.md#nodes`.
 */
import { z } from 'zod';
import type { AgentCommand } from '../../../domain/node/node.js';
import { agentCommandNames } from '../../../domain/node/node.js';
import { timestamp } from '../../../kernel/clock.js';
import { limits } from '../../../kernel/limits.js';
import { actorSchema } from './audit.js';
import { commandContext, setCommandHeaders } from '../checks/consistency.js';
import type { RestApp, RestDeps } from '../deps.js';
import { answers, ok } from '../answers/envelope.js';
import { body, oneOf } from '../schemas/fields.js';
import { postHeaders, readHeaders } from '../schemas/headers.js';
import { idParams, orNotFound, pathId } from '../checks/path-id.js';
import { noQuery } from '../schemas/query.js';
import { documented, sample } from '../schemas/documented.js';
import { idOf, time, timeOf } from '../schemas/shared-schemas.js';

const queued = z
  .object({
    id: idOf('Id of the command', sample.command),
    command: documented(z.enum(agentCommandNames), 'What the agent is to do', 'RELOAD_CONFIG'),
    state: documented(z.literal('queued'), 'It waits for the next heartbeat'),
    expires_at: timeOf('When it is given up', sample.later),
  })
  .meta({ id: 'AgentCommand', description: 'A command that waits for its agent' });

const states = ['queued', 'delivered', 'expired'] as const;

const listed = z
  .object({
    id: idOf('Id of the command', sample.command),
    command: documented(z.enum(agentCommandNames), 'What the agent is to do', 'RELOAD_CONFIG'),
    state: documented(
      z.enum(states),
      'It waits for the next heartbeat, went to the agent, or was given up before that',
      'delivered',
    ),
    queued_at: timeOf('When it was queued'),
    delivered_at: documented(time.nullable(), 'When it went to the agent; null if it did not', sample.later),
    expires_at: timeOf('When it is given up', sample.later),
    actor: actorSchema,
  })
  .meta({ id: 'ListedAgentCommand', description: 'A command to an agent, and what became of it' });

const newCommand = body({
  command: documented(oneOf(agentCommandNames), 'What the agent is to do', 'RELOAD_CONFIG'),
}).meta({ id: 'NewAgentCommand', description: 'A command to an agent' });

export function nodeCommandRoutes(app: RestApp, deps: RestDeps): void {
  app.route({
    method: 'GET',
    url: '/api/nodes/:id/commands',
    config: { access: 'anyone', takes: 'none' },
    schema: {
      operationId: 'listNodeCommands',
      summary: `List the last ${limits.rest.nodeCommands} commands to the agent, newest first`,
      description: 'Each with what became of it: whether it waits, went to the agent, or was given up.',
      tags: ['nodes'],
      params: idParams,
      querystring: noQuery,
      headers: readHeaders,
      response: answers(
        z
          .object({ items: documented(z.array(listed), 'Newest first') })
          .meta({ id: 'AgentCommands', description: 'Commands' }),
      ),
    },
    handler: async (request) => {
      const { commands } = orNotFound(deps.fleet.node(pathId(request.params, 'node')), 'node');
      const newest = commands.slice(-limits.rest.nodeCommands).reverse();
      const delivered = await deps.commandsDelivered(newest.map(({ id }) => id));
      const now = timestamp(deps.clock.now());
      const items = newest.map((command) => {
        const delivered_at = delivered.get(command.id) ?? null;
        return { ...command, delivered_at, state: stateOf(command, delivered_at, now) };
      });
      return ok({ items });
    },
  });

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

function stateOf({ expires_at }: AgentCommand, deliveredAt: string | null, now: string): (typeof states)[number] {
  if (deliveredAt !== null) return 'delivered';
  return expires_at > now ? 'queued' : 'expired';
}

/** The agent command that an earlier use of the idempotency key queued. Once newer ones have pushed it out, it is a 404. */
async function queuedBefore(deps: RestDeps, nodeId: string, id: string): Promise<AgentCommand> {
  const node = orNotFound(deps.fleet.node(nodeId), 'node');
  return orNotFound(
    node.commands.find((command) => command.id === id),
    'command',
  );
}

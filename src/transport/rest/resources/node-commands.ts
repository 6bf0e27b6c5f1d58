/** Commands to a node's agent, sent with the answer to its next heartbeat. Implements `docs/contract/rest.md#nodes`. */
import { z } from 'zod';
import { agentCommandNames, type AgentCommand } from '../../../domain/node/node.js';
import { timestamp } from '../../../kernel/clock.js';
import { limits } from '../../../kernel/limits.js';
import { actorSchema } from './audit.js';
import { commandContext, setCommandHeaders } from '../checks/consistency.js';
import type { RestApp, RestDeps } from '../deps.js';
import { answers, ok } from '../answers/envelope.js';
import { body, oneOf } from '../schemas/fields.js';
import { orNotFound, pathId } from '../checks/path-id.js';
import { documented, sample } from '../schemas/documented.js';
import { idOf, time, timeOf } from '../schemas/shared-schemas.js';

export const queuedCommand = z
  .object({
    id: idOf('Id of the command', sample.command),
    command: documented(z.enum(agentCommandNames), 'What the agent is to do', 'RELOAD_CONFIG'),
    state: documented(z.literal('queued'), 'It waits for the next heartbeat'),
    expires_at: timeOf('When it expires', sample.later),
  })
  .meta({ id: 'AgentCommand', description: 'A command that waits for its agent' });

const states = ['queued', 'delivered', 'expired'] as const;

const listed = z
  .object({
    id: idOf('Id of the command', sample.command),
    command: documented(z.enum(agentCommandNames), 'What the agent is to do', 'RELOAD_CONFIG'),
    state: documented(
      z.enum(states),
      'It waits for the next heartbeat, was delivered to the agent, or expired before that',
      'delivered',
    ),
    queued_at: timeOf('When it was queued'),
    delivered_at: documented(time.nullable(), 'When it was delivered; null if it was not', sample.later),
    expires_at: timeOf('When it expires', sample.later),
    actor: actorSchema,
  })
  .meta({ id: 'ListedAgentCommand', description: 'A command to an agent, with its state' });

/** A command in a request. */
export const command = documented(oneOf(agentCommandNames), 'What the agent is to do', 'RELOAD_CONFIG');

const newCommand = body({ command }).meta({ id: 'NewAgentCommand', description: 'A command to an agent' });

export function nodeCommandRoutes(app: RestApp, deps: RestDeps): void {
  app.route({
    method: 'GET',
    url: '/api/nodes/:id/commands',
    config: { access: 'anyone', takes: 'none' },
    schema: {
      operationId: 'listNodeCommands',
      summary: `List the last ${limits.rest.nodeCommands} commands to the agent, newest first`,
      description: 'Each with its state: queued, delivered or expired.',
      tags: ['nodes'],
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
      body: newCommand,
      response: answers(queuedCommand),
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

/** The command that an earlier use of the idempotency key queued; a 404 when newer ones have displaced it. */
async function queuedBefore(deps: RestDeps, nodeId: string, id: string): Promise<AgentCommand> {
  const node = orNotFound(deps.fleet.node(nodeId), 'node');
  return orNotFound(
    node.commands.find((command) => command.id === id),
    'command',
  );
}

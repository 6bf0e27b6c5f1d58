/**
 * Commands to a node's agent, sent with the answer to its next heartbeat, and what it answered to RUN_DIAGNOSTICS.
 * Implements `docs/contract/rest.md#nodes`.
 */
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
import { component, documented, sample } from '../schemas/documented.js';
import { idOf, time, timeOf } from '../schemas/shared-schemas.js';

export const queuedCommand = component('AgentCommand', 'A command that waits for its agent', {
  id: idOf('Id of the command', sample.command),
  command: documented(z.enum(agentCommandNames), 'What the agent is to do', 'RELOAD_CONFIG'),
  state: documented(z.literal('queued'), 'It waits for the next heartbeat'),
  expires_at: timeOf('When it expires', sample.later),
});

const states = ['queued', 'delivered', 'answered', 'expired'] as const;

const listed = component('ListedAgentCommand', 'A command to an agent, with its state', {
  id: idOf('Id of the command', sample.command),
  command: documented(z.enum(agentCommandNames), 'What the agent is to do', 'RELOAD_CONFIG'),
  state: documented(
    z.enum(states),
    'It waits for the next heartbeat, was delivered to the agent, was answered by it (RUN_DIAGNOSTICS), or expired before it was delivered',
    'delivered',
  ),
  queued_at: timeOf('When it was queued'),
  delivered_at: documented(time.nullable(), 'When it was delivered; null if it was not', sample.later),
  expires_at: timeOf('When it expires', sample.later),
  actor: actorSchema,
});

/** A command in a request. */
export const command = documented(oneOf(agentCommandNames), 'What the agent is to do', 'RELOAD_CONFIG');

const newCommand = body({ command }).meta({ id: 'NewAgentCommand', description: 'A command to an agent' });

const diagnostics = component('Diagnostics', 'What the agent found when it last checked itself; empty before', {
  at: documented(time.nullable(), 'When the report came; null before one', sample.later),
  agent_version: documented(z.string().nullable(), 'The agent that made it', 'reference-agent 0.2.0'),
  items: documented(
    z.array(
      component('DiagnosticsItem', 'One thing that the agent looked at, in its words', {
        name: documented(z.string(), 'What was looked at', 'upstream 192.0.2.7:443 over tcp, of l4_chain "web"'),
        value: documented(z.string(), 'What was found', 'not reached after 3 ms: ECONNREFUSED'),
        ok: documented(z.boolean(), 'False if it needs attention', false),
      }),
    ),
    'About the agent and its machine, then each listener, peer, upstream and target',
  ),
  log: documented(z.array(z.string()), 'The last lines of its log, oldest first', ['info configuration applied']),
});

export function nodeCommandRoutes(app: RestApp, deps: RestDeps): void {
  app.get('/api/nodes/:id/commands', {
    config: { access: 'anyone', takes: 'none' },
    schema: {
      operationId: 'listNodeCommands',
      summary: `List the last ${limits.rest.nodeCommands} commands to the agent, newest first`,
      description: 'Each with its state: queued, delivered, answered or expired.',
      response: answers(component('AgentCommands', 'Commands', { items: documented(z.array(listed), 'Newest first') })),
    },
    handler: async (request) => {
      const { commands } = orNotFound(deps.fleet.node(pathId(request.params, 'node')), 'node');
      const newest = commands.slice(-limits.rest.nodeCommands).reverse();
      const delivered = await deps.commandsDelivered(newest.map(({ id }) => id));
      const now = timestamp(deps.clock.now());
      const items = newest.map((command) => {
        const sent = delivered.get(command.id);
        return { ...command, delivered_at: sent?.at ?? null, state: stateOf(command, sent, now) };
      });
      return ok({ items });
    },
  });

  app.post('/api/nodes/:id/commands', {
    config: { access: 'operator', takes: 'json' },
    schema: {
      operationId: 'queueNodeCommand',
      summary: 'Queue a command for the agent; it expires after ten minutes',
      description: 'The agent gets the command with the answer to its next heartbeat.',
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

  app.get('/api/nodes/:id/diagnostics', {
    config: { access: 'operator', takes: 'none' },
    schema: {
      operationId: 'getNodeDiagnostics',
      summary: 'Get what the agent answered last to RUN_DIAGNOSTICS',
      description:
        'Once the command has the state `answered`, the report is there. It is kept for 7 days. A viewer may not read it: it holds lines of the log.',
      response: answers(diagnostics),
    },
    handler: async (request) => {
      const { id } = orNotFound(deps.fleet.node(pathId(request.params, 'node')), 'node');
      const { at, agent_version, items, log } = (await deps.diagnostics.of(id)) ?? none;
      return ok({ at, agent_version, items, log });
    },
  });
}

const none = { at: null, agent_version: null, items: [], log: [] } as const;

function stateOf(
  { expires_at }: AgentCommand,
  sent: { readonly answered: boolean } | undefined,
  now: string,
): (typeof states)[number] {
  if (sent !== undefined) return sent.answered ? 'answered' : 'delivered';
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

/**
 * Commands about several nodes: labels, and commands to their agents. Each is one command with one audit entry. Implements
 * `docs/contract/rest.md#nodes`.
 */
import { z } from 'zod';
import { fleetEvent } from '../../../domain/fleet/resources.js';
import { limits } from '../../../kernel/limits.js';
import { answers, ok } from '../answers/envelope.js';
import { commandContext, commandOf, setCommandHeaders } from '../checks/consistency.js';
import type { RestApp, RestDeps } from '../deps.js';
import { component, documented, sample } from '../schemas/documented.js';
import { body, distinct, labelKey, labels, list, uuid } from '../schemas/fields.js';
import { entrySchema } from './audit.js';
import { command, queuedCommand } from './node-commands.js';
import { nodeSchema, nodeView } from './node-view.js';
import { writtenEntry } from './written-entry.js';

const node_ids = documented(distinct(uuid, 1, 'node', limits.rest.bulkNodes), 'Ids of nodes, each once', [
  sample.entryNode,
  sample.exitNode,
]);

const newLabels = body({
  node_ids,
  set: documented(labels.optional(), 'Labels that the nodes get', { region: 'eu' }),
  remove: documented(list(labelKey).optional(), 'Keys of labels that they lose', ['rack']),
})
  .superRefine(({ set, remove }, ctx) => {
    if (set === undefined && remove === undefined) {
      ctx.addIssue({ code: 'custom', path: ['set'], message: 'expected labels, unless "remove" has keys' });
    }
    const twice = remove?.findIndex((key) => set !== undefined && Object.hasOwn(set, key)) ?? -1;
    if (twice >= 0)
      ctx.addIssue({ code: 'custom', path: ['remove', twice], message: 'expected a key that "set" lacks' });
  })
  .meta({ id: 'LabelsOfNodes', description: 'Labels of several nodes' });

const newCommands = body({ node_ids, command }).meta({
  id: 'CommandOfNodes',
  description: 'A command to the agents of several nodes',
});

export function nodeBulkRoutes(app: RestApp, deps: RestDeps): void {
  const { nodes } = deps.commands;

  app.post('/api/nodes/labels', {
    config: { access: 'operator', takes: 'json' },
    schema: {
      operationId: 'labelNodes',
      summary: 'Change labels of several nodes',
      description: 'One command with one audit entry, which is reverted as a whole. Other labels stay.',
      body: newLabels,
      response: answers(
        component('LabelledNodes', 'The nodes with their new labels', {
          entry: documented(entrySchema.nullable(), 'The audit entry; null when nothing changed'),
          nodes: documented(z.array(nodeSchema), 'In the order of `node_ids`'),
        }),
      ),
    },
    handler: async (request, reply) => {
      const { node_ids: ids, set = {}, remove = [] } = request.body;
      const outcome = await nodes.label(commandContext(request), ids, { set, remove });
      setCommandHeaders(reply, outcome);
      const written = commandOf(outcome);
      // A repeat may come after a node was deleted.
      const shown = ids.flatMap((id) => deps.fleet.node(id) ?? []).map((node) => nodeView(deps, node));
      return ok({ entry: written === undefined ? null : writtenEntry(deps, written), nodes: shown });
    },
  });

  app.post('/api/nodes/commands', {
    config: { access: 'operator', takes: 'json' },
    schema: {
      operationId: 'queueNodeCommands',
      summary: 'Queue a command for the agents of several nodes; it expires after ten minutes',
      description: 'One command with one audit entry. Each agent gets it with the answer to its next heartbeat.',
      body: newCommands,
      response: answers(
        component('QueuedCommands', 'The commands that wait for their agents', {
          entry: documented(entrySchema, 'The audit entry'),
          items: documented(z.array(queuedCommand), 'In the order of `node_ids`'),
        }),
      ),
    },
    handler: async (request, reply) => {
      const outcome = await nodes.commandSeveral(commandContext(request), request.body.node_ids, request.body.command);
      setCommandHeaders(reply, outcome);
      const written = commandOf(outcome);
      if (written === undefined) throw new Error('a command to agents is always written');
      const items = written.events.flatMap((recorded) => {
        const { type, data } = fleetEvent(recorded);
        if (type !== 'NodeCommandQueued') return [];
        const id = written.events.length === 1 ? recorded.metadata.command.id : recorded.id;
        return [{ id, command: data.command, state: 'queued' as const, expires_at: data.expires_at }];
      });
      return ok({ entry: writtenEntry(deps, written), items });
    },
  });
}

/** Handlers of nodes; `node-psks.ts` makes their PSKs. The rules are in `domain/node`. */
import type { FleetCommand } from '../domain/fleet/resources.js';
import type { Fleet } from '../domain/fleet/fleet.js';
import type { AgentCommandName, QueuedCommand } from '../domain/node/node.js';
import { timestamp, type Clock } from '../kernel/clock.js';
import type { Ids } from '../kernel/ids.js';
import { limits } from '../kernel/limits.js';
import type { CommandHandlers } from './handlers-port.js';
import { createPskHandlers, issuePsk, underNewestKey, type PskMaker } from './node-psks.js';
import type { Gateway } from './port.js';
import { lifecycleHandlers, present } from './resources.js';

export interface NodeHandlerOptions extends PskMaker {
  readonly gateway: Gateway<Fleet, FleetCommand>;
  readonly clock: Clock;
  readonly ids: Ids;
}

export function createNodeHandlers(options: NodeHandlerOptions): CommandHandlers['nodes'] {
  const { gateway, clock, ids } = options;
  const queuedNow = (command: AgentCommandName): QueuedCommand => {
    const now = clock.now();
    return { command, queued_at: timestamp(now), expires_at: timestamp(now + limits.agent.commandExpiryMs) };
  };

  return {
    ...lifecycleHandlers('node', gateway, ids),
    ...createPskHandlers(options),
    create(context, { issuePsk: wantsPsk, ...node }) {
      const id = ids.next();
      return underNewestKey(() => {
        const made = wantsPsk ? issuePsk(options, id) : null;
        return gateway.execute({ type: 'CreateNode', id, ...node, psk: made?.psk ?? null }, context, (fleet) => ({
          node: present(fleet.tables.node.get(id)),
          controlPsk: made?.controlPsk ?? null,
        }));
      });
    },
    async command(context, id, command) {
      const queued = queuedNow(command);
      const outcome = await gateway.execute({ type: 'QueueNodeCommand', id, ...queued }, context, () => ({
        ...queued,
        actor: context.actor,
      }));
      return outcome.kind === 'done' ? { ...outcome, result: { id: outcome.commandId, ...outcome.result } } : outcome;
    },
    commandSeveral: (context, ids, command) =>
      gateway.execute({ type: 'QueueNodeCommands', ids, ...queuedNow(command) }, context, () => undefined),
    label: (context, ids, labels) => gateway.execute({ type: 'LabelNodes', ids, ...labels }, context, () => undefined),
    refresh: (context, id) =>
      gateway.execute({ type: 'RefreshNodeConfig', id }, context, (fleet) => ({
        generation: fleet.generationOf(id) ?? 0,
      })),
  };
}

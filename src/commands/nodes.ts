/** Handlers of nodes, which make and seal PSKs. The rules are in `domain/node`. */
import type { FleetCommand } from '../domain/fleet/resources.js';
import type { Fleet } from '../domain/fleet/fleet.js';
import type { AgentCommandName, QueuedCommand } from '../domain/node/node.js';
import { timestamp, type Clock } from '../kernel/clock.js';
import { streams } from '../kernel/event.js';
import type { Ids } from '../kernel/ids.js';
import { limits } from '../kernel/limits.js';
import type { Keyring } from '../security/keyring.js';
import { issueControlPsk, sealVerifier } from '../security/psk.js';
import type { SealedValue } from '../security/sealing.js';
import type { CommandHandlers } from './handlers-port.js';
import type { Gateway } from './port.js';
import { lifecycleHandlers, present } from './resources.js';

export interface NodeHandlerOptions {
  readonly gateway: Gateway<Fleet, FleetCommand>;
  readonly keyring: Keyring;
  /** 32 bytes, part of every PSK, so that the agent pins the service. */
  readonly servicePublic: Uint8Array;
  readonly clock: Clock;
  readonly ids: Ids;
}

export interface NewPsk {
  readonly controlPsk: string;
  readonly psk: { readonly fingerprint: string; readonly verifier: SealedValue };
}

/** A new PSK for a node, and the verifier for the log. */
export function issuePsk(
  { keyring, servicePublic }: Pick<NodeHandlerOptions, 'keyring' | 'servicePublic'>,
  nodeId: string,
): NewPsk {
  const issued = issueControlPsk(servicePublic);
  const verifier = sealVerifier(keyring, issued.verifier, { stream: streams.fleet, resourceId: nodeId });
  issued.verifier.psk.fill(0);
  return { controlPsk: issued.controlPsk, psk: { fingerprint: issued.fingerprint, verifier } };
}

export function createNodeHandlers(options: NodeHandlerOptions): CommandHandlers['nodes'] {
  const { gateway, clock, ids } = options;
  const newPsk = (nodeId: string): NewPsk => issuePsk(options, nodeId);
  const queuedNow = (command: AgentCommandName): QueuedCommand => {
    const now = clock.now();
    return { command, queued_at: timestamp(now), expires_at: timestamp(now + limits.agent.commandExpiryMs) };
  };

  return {
    ...lifecycleHandlers('node', gateway, ids),
    async create(context, fields) {
      const { issuePsk: wantsPsk, ...node } = fields;
      const id = ids.next();
      const issued = wantsPsk ? newPsk(id) : null;
      return gateway.execute({ type: 'CreateNode', id, ...node, psk: issued?.psk ?? null }, context, (fleet) => ({
        node: present(fleet.tables.node.get(id)),
        controlPsk: issued?.controlPsk ?? null,
      }));
    },
    async issuePsk(context, id) {
      const issued = newPsk(id);
      return gateway.execute({ type: 'IssueNodePsk', id, ...issued.psk }, context, () => ({
        controlPsk: issued.controlPsk,
        fingerprint: issued.psk.fingerprint,
      }));
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

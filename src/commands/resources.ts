/**
 * Handlers that only run a command on the gateway: create, update and delete of every resource, the deploy of a chain,
 * listener policies and the settings. `nodes.ts` and `credentials.ts` have those that make keys.
 */
import { chainKey } from '../domain/chain/chain.js';
import {
  commandOn,
  fleetEvent,
  plainTypes,
  type FleetCommand,
  type FleetEvent,
  type ResourceType,
  type StateOf,
} from '../domain/fleet/resources.js';
import type { Fleet } from '../domain/fleet/fleet.js';
import { policyId, policyKey } from '../domain/listener-policy/policy.js';
import { settingsOf } from '../domain/settings/settings.js';
import type { Ids } from '../kernel/ids.js';
import type { CommandHandlers, DeployResult, LifecycleHandlers } from './handlers-port.js';
import type { Gateway } from './port.js';

type FleetGateway = Gateway<Fleet, FleetCommand>;

/** Asserts that a resource is there right after its own command. */
export function present<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('a resource is missing right after its own command');
  return value;
}

export function lifecycleHandlers<T extends ResourceType>(
  type: T,
  gateway: FleetGateway,
  ids: Ids,
): LifecycleHandlers<T> {
  const state = (id: string) => (fleet: Fleet) => present(fleet.get<StateOf<T>>({ type }, id));
  return {
    create(context, fields) {
      const id = ids.next();
      return gateway.execute(commandOn('Create', type, { id, ...fields }), context, state(id));
    },
    update: (context, id, ifMatch, fields) =>
      gateway.execute(commandOn('Update', type, { id, ifMatch, ...fields }), context, state(id)),
    remove: (context, id, ifMatch) =>
      gateway.execute(commandOn('Delete', type, { id, ifMatch }), context, () => undefined),
  };
}

/** Handlers of every resource except nodes, policies, and those that store secrets. */
export function createResourceHandlers(gateway: FleetGateway, ids: Ids): CommandHandlers['resources'] {
  const handlers = plainTypes
    .filter((type) => type !== 'credential' && type !== 'webhook' && type !== 'join_token')
    .map((type) => [type, lifecycleHandlers(type, gateway, ids)]);
  return Object.fromEntries(handlers) as CommandHandlers['resources'];
}

export function createChainHandlers(gateway: FleetGateway): CommandHandlers['chains'] {
  return {
    async deploy(context, id, ifMatch) {
      const outcome = await gateway.execute({ type: 'DeployChain', id, ifMatch }, context, (fleet) =>
        present(fleet.get(chainKey, id)),
      );
      if (outcome.kind !== 'done') return outcome;
      // The start of a rollout may follow the deploy.
      const revision = outcome.events.at(-1)?.revision ?? 0;
      const nodes = outcome.events.flatMap((event) => deployedGenerations(fleetEvent(event), revision));
      return { ...outcome, result: { chain: outcome.result, nodes } };
    },
  };
}

/** The generations that a deploy at the revision gave to its nodes. */
function deployedGenerations(event: FleetEvent, revision: number): DeployResult['nodes'] {
  if (event.type !== 'ChainDeployed') return [];
  return event.data.nodes.map(({ node_id, offset }) => ({ node_id, generation: 1 + revision + offset }));
}

export function createPolicyHandlers(gateway: FleetGateway): CommandHandlers['policies'] {
  return {
    save: (context, ifMatch, fields) =>
      gateway.execute({ type: 'SaveListenerPolicy', ifMatch, ...fields }, context, (fleet) =>
        present(fleet.get(policyKey, policyId(fields))),
      ),
    remove: (context, ifMatch, key) =>
      gateway.execute({ type: 'DeleteListenerPolicy', ifMatch, ...key }, context, () => undefined),
  };
}

export function createSettingsHandlers(gateway: FleetGateway): CommandHandlers['settings'] {
  return {
    update: (context, ifMatch, fields) =>
      gateway.execute({ type: 'UpdateConnectivity', ifMatch, ...fields }, context, settingsOf),
  };
}

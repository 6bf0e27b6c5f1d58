/** Handlers of resources whose commands need nothing beside the gateway: upstreams, chains, settings. */
import type { FleetCommand, FleetEvent } from '../domain/fleet/events.js';
import type { Fleet } from '../domain/fleet/fleet.js';
import { fleetEvent } from '../domain/log/upcast.js';
import type { Ids } from '../kernel/ids.js';
import type { CommandHandlers, DeployResult } from './handlers-port.js';
import { present } from './nodes.js';
import type { Gateway } from './port.js';

type FleetGateway = Gateway<Fleet, FleetCommand>;

export function createUpstreamHandlers(gateway: FleetGateway, ids: Ids): CommandHandlers['upstreams'] {
  return {
    create(context, fields) {
      const id = ids.next();
      return gateway.execute({ type: 'CreateUpstream', id, ...fields, enabled: true }, context, (fleet) =>
        present(fleet.upstreams.get(id)),
      );
    },
    update: (context, id, ifMatch, fields) =>
      gateway.execute({ type: 'UpdateUpstream', id, ifMatch, ...fields }, context, (fleet) =>
        present(fleet.upstreams.get(id)),
      ),
    remove: (context, id, ifMatch) =>
      gateway.execute({ type: 'DeleteUpstream', id, ifMatch }, context, () => undefined),
  };
}

export function createChainHandlers(gateway: FleetGateway, ids: Ids): CommandHandlers['chains'] {
  return {
    create(context, fields) {
      const id = ids.next();
      return gateway.execute({ type: 'CreateChain', id, ...fields }, context, (fleet) => present(fleet.chains.get(id)));
    },
    update: (context, id, ifMatch, fields) =>
      gateway.execute({ type: 'UpdateChain', id, ifMatch, ...fields }, context, (fleet) =>
        present(fleet.chains.get(id)),
      ),
    remove: (context, id, ifMatch) => gateway.execute({ type: 'DeleteChain', id, ifMatch }, context, () => undefined),
    async deploy(context, id, ifMatch) {
      const outcome = await gateway.execute({ type: 'DeployChain', id, ifMatch }, context, (fleet) =>
        present(fleet.chains.get(id)),
      );
      if (outcome.kind !== 'done') return outcome;
      const nodes = outcome.events.flatMap((event) => deployedGenerations(fleetEvent(event), event.revision));
      return { ...outcome, result: { chain: outcome.result, nodes } };
    },
  };
}

/** The generations that a deploy at a revision gave to the nodes of the old and of the new definition. */
function deployedGenerations(event: FleetEvent, revision: number): DeployResult['nodes'] {
  if (event.type !== 'ChainDeployed') return [];
  return event.data.nodes.map(({ node_id, offset }) => ({ node_id, generation: 1 + revision + offset }));
}

export function createSettingsHandlers(gateway: FleetGateway): CommandHandlers['settings'] {
  return {
    update: (context, ifMatch, fields) =>
      gateway.execute({ type: 'UpdateConnectivity', ifMatch, ...fields }, context, (fleet) => fleet.settings.value),
  };
}

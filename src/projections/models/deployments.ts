/**
 * Read model of deployments: each deploy of a chain, by the id of its command, with the generation that it gave each
 * node. How far the nodes are is not in it: that follows from the nodes' facts. Implements `docs/contract/rest.md#l4-chains` (deploy,
 * deployments) and `docs/contract/domain.md#generation`.
 */
import { fleetEvent } from '../../domain/fleet/events.js';
import { lastEvent, streams } from '../../kernel/event.js';
import type { Json } from '../../kernel/json.js';
import type { Collection } from '../../storage/read-store.js';
import type { Deployment, Projections } from '../port.js';
import { asJson, fromJson } from '../read-model.js';
import type { ReadModel } from '../read-model.js';
import { tuning } from '../tuning.js';

export type DeploymentFields = {
  readonly chain_id: string;
  /** Revision of the command's last event: newer deployments have higher ones. */
  readonly revision: number;
  readonly deployment: Json;
};

const deploymentOf = (fields: DeploymentFields): Deployment => fromJson<Deployment>(fields.deployment);

export const deployments: ReadModel<DeploymentFields> = {
  name: 'deployments',
  indexes: [{ fields: ['chain_id', 'revision'] }],

  keys(event) {
    // Back to `draft` (the revert of a first deploy) publishes nothing and is no deployment.
    if (event.stream !== streams.fleet) return [];
    const own = fleetEvent(event);
    return own.type === 'ChainDeployed' && own.data.definition.to !== null ? [event.metadata.command.id] : [];
  },

  evolve(fields, event, command, id) {
    const own = fleetEvent(event);
    if (own.type !== 'ChainDeployed') return fields;
    const { chain_id, chain_version, nodes } = own.data;
    const { revision } = lastEvent(command);
    const deployment: Deployment = {
      id,
      chain_id,
      chain_version,
      at: event.metadata.occurred_at,
      nodes: nodes.map(({ node_id, offset }) => ({ node_id, generation: 1 + revision + offset })),
    };
    return { chain_id, revision, deployment: asJson(deployment) };
  },
};

/** @param open gives the collection, or throws `unavailable` while the read models can't be shown */
export function deploymentQueries(open: () => Collection<DeploymentFields>): Projections['deployments'] {
  return {
    async get(id) {
      const found = await open().get(id);
      return found === undefined ? undefined : deploymentOf(found.fields);
    },
    async ofChain(chainId) {
      const { items } = await open().find({
        where: [{ field: 'chain_id', op: 'eq', value: chainId }],
        sort: [{ field: 'revision', direction: 'desc' }],
        limit: tuning.deploymentsListed,
      });
      return items.map(({ fields }) => deploymentOf(fields));
    },
  };
}

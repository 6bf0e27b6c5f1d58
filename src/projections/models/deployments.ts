/**
 * Stored read model: each deploy of a chain, with the generation that it gave each node. The states of nodes follow from the
 * facts of their agents. Implements `docs/contract/rest.md#l4-chains` and `docs/contract/domain.md#generation`.
 */
import { deploymentId } from '../../domain/chain/chain.js';
import { fleetEvent } from '../../domain/fleet/resources.js';
import { lastEvent, streams } from '../../kernel/event.js';
import { asJson, fromJson, type Json } from '../../kernel/json.js';
import type { Collection } from '../../storage/read-store.js';
import type { Projections, StoredDeployment } from '../port.js';
import type { ReadModel } from '../read-model.js';
import { tuning } from '../tuning.js';

export type DeploymentFields = {
  readonly chain_id: string;
  /** The revision of the command's last event, padded; newer deployments have higher ones. */
  readonly revision: string;
  readonly deployment: Json;
};

const deploymentOf = (fields: DeploymentFields): StoredDeployment => fromJson<StoredDeployment>(fields.deployment);

export const deployments: ReadModel<DeploymentFields> = {
  name: 'deployments',
  index: { group: 'chain_id', order: 'revision' },

  keys(event) {
    if (event.stream !== streams.fleet) return [];
    const { type, data } = fleetEvent(event);
    // The revert of a first deploy has no new definition, so it is not a deployment.
    return type === 'ChainDeployed' && data.definition.to !== null ? [deploymentId(event)] : [];
  },

  evolve(fields, event, command, id) {
    const { type, data } = fleetEvent(event);
    if (type !== 'ChainDeployed' || data.definition.to === null) return fields;
    const { chain_id, chain_version, nodes } = data;
    const { revision } = lastEvent(command);
    const deployment: StoredDeployment = {
      id,
      chain_id,
      chain_version,
      at: event.metadata.occurred_at,
      definition: data.definition.to,
      nodes: nodes.map(({ node_id, offset }) => ({ node_id, generation: 1 + revision + offset })),
    };
    return { chain_id, revision: String(revision).padStart(16, '0'), deployment: asJson(deployment) };
  },
};

/** @param open returns the collection, or throws `unavailable` while the read models cannot be queried */
export function deploymentQueries(open: () => Collection<DeploymentFields>): Projections['deployments'] {
  return {
    async ofChain(chainId) {
      const items = await open().find({ groups: [chainId], direction: 'desc', limit: tuning.deploymentsListed });
      return items.map(({ fields }) => deploymentOf(fields));
    },
  };
}

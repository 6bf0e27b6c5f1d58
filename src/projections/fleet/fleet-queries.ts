/**
 * REST's queries on the committed fleet, in memory: resources, the port table, intended links, names, counts. Nothing
 * here waits for a store. Implements `docs/architecture.md#read-models`.
 */
import { planDeploy } from '../../domain/compile/plan.js';
import { referrersOf } from '../../domain/fleet/referrers.js';
import { intendedLinks } from '../../domain/port-table/intended-links.js';
import { portRows } from '../../domain/port-table/port-table.js';
import type { Clock } from '../../kernel/clock.js';
import type { FleetQueries } from '../port.js';
import type { CommittedFleet } from './committed-fleet.js';
import { createFleetCounts } from './counts.js';
import { createLiveListeners } from './live-listeners.js';
import { createNodeNames } from './node-names.js';
import { allResourceQueries, nodeQueries } from './resources.js';

export function fleetQueries({ fleet }: Pick<CommittedFleet, 'fleet'>, clock: Clock): FleetQueries {
  return {
    node: (nodeId) => fleet().tables.node.get(nodeId),
    chain: (chainId) => fleet().tables.l4_chain.get(chainId),
    chains: () => fleet().tables.l4_chain.values(),
    upstream: (upstreamId) => fleet().tables.l4_upstream.get(upstreamId),
    settings: () => fleet().singletons.connectivity.value,
    credentials: () => fleet().tables.credential.values(),
    nodes: nodeQueries(fleet),
    resources: allResourceQueries(fleet),
    referrers: (type, id) => referrersOf(fleet(), type, id),
    nodeIds: () => fleet().tables.node.ids(),
    nodeNames: createNodeNames(fleet),
    generation: (nodeId) => fleet().generationOf(nodeId),
    portRows: (nodeId) => portRows(fleet(), nodeId),
    links: (nodeId) => intendedLinks(fleet(), nodeId),
    liveListeners: createLiveListeners(fleet),
    resourceCounts: createFleetCounts({ fleet, clock }),
    plan: (chainId) => planDeploy(fleet(), chainId),
    revision: () => fleet().revision.value,
  };
}

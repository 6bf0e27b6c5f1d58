/**
 * REST's queries on the committed fleet, in memory: resources, the port table, live listeners, intended links, names, and
 * the counts of the dashboard. Nothing here waits for a store. Implements `docs/architecture.md#read-models` and
 * `docs/contract/rest.md#dashboard`.
 */
import { chainKey } from '../../domain/chain/chain.js';
import type { ChainState } from '../../domain/chain/chain.js';
import { standingRevert } from '../../domain/aggregate/reverts.js';
import { planDeploy } from '../../domain/compile/plan.js';
import { driftOf, hasSet, setsOf } from '../../domain/fleet-file/drift.js';
import { baseOf } from '../../domain/fleet-set/declaration.js';
import { firstReferrers, referrersOf } from '../../domain/fleet/referrers.js';
import { freePorts } from '../../domain/listeners/free-ports.js';
import { intendedLinks, linksOfNode } from '../../domain/port-table/intended-links.js';
import { splitOwner } from '../../domain/references/references.js';
import { upstreamKey } from '../../domain/upstream/upstream.js';
import { portRows, liveListeners } from '../../domain/port-table/port-table.js';
import type { Clock } from '../../kernel/clock.js';
import { withPauses } from '../../kernel/pieces.js';
import type { AnyState } from '../../domain/fleet/resources.js';
import { resourceTypes } from '../../domain/fleet/resources.js';
import type { FleetQueries, WholeFleet } from '../port.js';
import type { CommittedFleet } from './committed-fleet.js';
import { createNodeNames } from './node-names.js';
import { allResourceQueries, nodeQueries } from './resources.js';
import type { ResourceCounts } from '../../domain/fleet/counts.js';
import { countResources } from '../../domain/fleet/counts.js';
import type { Fleet } from '../../domain/fleet/fleet.js';
import { createShared } from '../../kernel/shared.js';
import { tuning } from '../tuning.js';
import { createLru } from '../../kernel/lru.js';

export function fleetQueries({ fleet }: Pick<CommittedFleet, 'fleet'>, clock: Clock): FleetQueries {
  return {
    node: (nodeId) => fleet().tables.node.get(nodeId),
    chain: (chainId) => fleet().tables.l4_chain.get(chainId),
    chains: () => fleet().tables.l4_chain.values(),
    upstream: (upstreamId) => fleet().tables.l4_upstream.get(upstreamId),
    chainsWith: (upstreamId) => chainsWith(fleet(), upstreamId),
    upstreams: () => fleet().tables.l4_upstream.values(),
    nameOf: (type, id) => fleet().nameOf(type, id),
    whole: () => wholeFleet(fleet()),
    settings: () => fleet().singletons.connectivity.value,
    credentials: () => fleet().tables.credential.values(),
    nodes: nodeQueries(fleet),
    resources: allResourceQueries(fleet),
    referrers: (type, id) => referrersOf(fleet(), type, id),
    firstReferrers: (type, id, count) => firstReferrers(fleet(), type, id, count),
    nodeIds: () => fleet().tables.node.ids(),
    nodeNames: createNodeNames(fleet),
    generation: (nodeId) => fleet().generationOf(nodeId),
    portRows: (nodeId) => portRows(fleet(), nodeId),
    freePorts: (nodeId, transport) => freePorts(fleet(), nodeId, transport),
    links: (nodeId) => intendedLinks(fleet(), nodeId),
    linksOfNode: (nodeId) => linksOfNode(fleet(), nodeId),
    liveListeners: createLiveListeners(fleet),
    resourceCounts: createFleetCounts({ fleet, clock }),
    plan: (chainId) => planDeploy(fleet(), chainId),
    sets: () => withPauses(setsOf(fleet())),
    drift: async (set) => (hasSet(fleet(), set) ? withPauses(driftOf(fleet(), set)) : undefined),
    base: (set) => baseOf(fleet().singletons.fleet.value, set),
    revertOf: (entryId) => standingRevert(fleet().reverts, entryId),
    revision: () => fleet().revision.value,
  };
}

function chainsWith(fleet: Fleet, upstreamId: string): readonly ChainState[] {
  const owners = [...fleet.referrersOf(upstreamKey.type, upstreamId)].map(splitOwner);
  return owners.flatMap(({ type, id }) => (type === chainKey.type ? (fleet.tables.l4_chain.get(id) ?? []) : []));
}

function wholeFleet({ tables, revision, singletons }: Fleet): WholeFleet {
  const states = new Map<string, readonly AnyState[]>(
    resourceTypes.map((type) => [type, [...tables[type].values()] as readonly AnyState[]]),
  );
  const names = new Map<string, ReadonlyMap<string, string>>();
  const statesOf = (type: string): readonly AnyState[] => states.get(type) ?? [];
  return {
    revision: revision.value,
    settings: singletons.connectivity.value,
    states: statesOf,
    nameOf(type, id) {
      const known = names.get(type) ?? new Map(statesOf(type).map((state) => [state.id, state.name]));
      names.set(type, known);
      return known.get(id) ?? id;
    },
  };
}

export interface FleetCountsDeps {
  fleet(): Fleet;
  readonly clock: Clock;
}

/** @returns a function that gives counts which hold all that the fold holds at the call */
function createFleetCounts({ fleet, clock }: FleetCountsDeps): () => Promise<ResourceCounts> {
  const count = (): Promise<ResourceCounts> => withPauses(countResources(fleet(), clock.now()));
  return createShared(count, {
    stamp: () => fleet().revision.value,
    isFresh: ({ stamp, begunAt }) =>
      stamp === fleet().revision.value && clock.monotonic() - begunAt < tuning.countsReuseMs,
    now: clock.monotonic,
  });
}

/** @returns a function that gives the listeners of a node, as `listenerKey` names them; none for an unknown node */
function createLiveListeners(fleet: () => Fleet): (nodeId: string) => ReadonlySet<string> {
  const known = createLru<string, { readonly generation: number; readonly live: ReadonlySet<string> }>({
    maxEntries: tuning.rememberedNodes,
  });
  return (nodeId) => {
    const generation = fleet().generationOf(nodeId);
    if (generation === undefined) return new Set();
    const last = known.get(nodeId);
    if (last?.generation === generation) return last.live;
    const live = liveListeners(fleet(), nodeId);
    known.set(nodeId, { generation, live });
    return live;
  };
}

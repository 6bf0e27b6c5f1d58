/**
 * Held in memory: the committed fleet as REST asks it. Resources, names, references and sets are answered here; the read models
 * beside `port.ts` answer the rest. Nothing waits for a store. Implements `docs/architecture.md#read-models`.
 */
import { chainKey } from '../../domain/chain/chain.js';
import type { ChainState } from '../../domain/chain/chain.js';
import { standingRevert } from '../../domain/aggregate/reverts.js';
import { driftOf, hasSet, setsOf } from '../../domain/fleet-file/drift.js';
import { baseOf } from '../../domain/fleet-set/declaration.js';
import { firstReferrers, referrersOf } from '../../domain/fleet/referrers.js';
import { splitOwner } from '../../domain/references/references.js';
import { upstreamKey } from '../../domain/upstream/upstream.js';
import type { Clock } from '../../kernel/clock.js';
import { withPauses } from '../../kernel/pieces.js';
import type { AnyState } from '../../domain/fleet/resources.js';
import { resourceTypes } from '../../domain/fleet/resources.js';
import { dashboard } from '../dashboard.js';
import { listenerIntents } from '../listener-intents.js';
import { nodeSnapshots } from '../node-snapshots.js';
import type { FleetQueries, WholeFleet } from '../port.js';
import { portTable } from '../port-table.js';
import type { CommittedFleet } from './committed-fleet.js';
import { createNodeNames } from './node-names.js';
import { allResourceQueries, nodeQueries } from './resources.js';
import type { Fleet } from '../../domain/fleet/fleet.js';

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
    ...portTable(fleet),
    ...listenerIntents(fleet),
    ...dashboard({ fleet, clock }),
    ...nodeSnapshots(fleet),
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

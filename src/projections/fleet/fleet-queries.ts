/**
 * Queries on the committed fleet, all from memory. `src/reports/` has what agents report. Implements
 * `docs/architecture.md#read-models`, and of `docs/contract/rest.md` the intent in `#port-management` and `#nodes`, and the
 * counts of resources in `#dashboard`.
 */
import { chainKey, type ChainState } from '../../domain/chain/chain.js';
import { activeRevert } from '../../domain/aggregate/reverts.js';
import { addNeeds, needsOf, needsOfNode } from '../../domain/compile/needs.js';
import { confirmationKey, waitsUntil } from '../../domain/confirmation/confirmation.js';
import { driftOf, hasSet, setsOf } from '../../domain/fleet-file/drift.js';
import { baseOf } from '../../domain/fleet-set/declaration.js';
import { countResources, type ResourceCounts } from '../../domain/fleet/counts.js';
import { firstReferrers, referrersOf } from '../../domain/fleet/referrers.js';
import { freePorts } from '../../domain/listeners/free-ports.js';
import { intendedLinks, linksOfNode } from '../../domain/port-table/intended-links.js';
import { liveListeners, portRows } from '../../domain/port-table/port-table.js';
import { sortKey } from '../../domain/resource/meta.js';
import type { Feature } from '../../domain/snapshot/features.js';
import { splitOwner } from '../../domain/references/references.js';
import { upstreamKey } from '../../domain/upstream/upstream.js';
import { timestamp, type Clock } from '../../kernel/clock.js';
import { compareText } from '../../kernel/compare-text.js';
import { createLru } from '../../kernel/lru.js';
import { forEach, withPauses } from '../../kernel/pieces.js';
import { createShared } from '../../kernel/shared.js';
import { fleetEvent, resourceTypes, type AnyState } from '../../domain/fleet/resources.js';
import { nodeSnapshots } from '../node-snapshots.js';
import type { EntryConfirmation, FleetQueries, NodeName, WholeFleet } from '../port.js';
import { tuning } from '../tuning.js';
import type { CommittedFleet } from './committed-fleet.js';
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
    rollouts: () => fleet().tables.rollout.values(),
    settings: () => fleet().singletons.connectivity.value,
    credentials: () => fleet().tables.credential.values(),
    nodes: nodeQueries(fleet),
    resources: allResourceQueries(fleet),
    referrers: (type, id) => referrersOf(fleet(), type, id),
    firstReferrers: (type, id, count) => firstReferrers(fleet(), type, id, count),
    nodeIds: () => fleet().tables.node.ids(),
    nodeNames: createNodeNames(fleet),
    rollout: (id) => fleet().tables.rollout.get(id),
    heldBy: (nodeId) => fleet().heldBy(nodeId),
    portRows: (nodeId) => portRows(fleet(), nodeId),
    freePorts: (nodeId, transport) => freePorts(fleet(), nodeId, transport),
    liveListeners: createLiveListeners(fleet),
    links: (nodeId) => intendedLinks(fleet(), nodeId),
    linksOfNode: (nodeId) => linksOfNode(fleet(), nodeId),
    resourceCounts: createResourceCounts(fleet, clock),
    ...nodeSnapshots(fleet),
    needs: (type, id, definition) => needsOf(fleet(), type, id, definition),
    async needsOfEvents(events) {
      const needs = new Map<string, Set<Feature>>();
      await withPauses(forEach(events, tuning.eventsPerSlice, (event) => addNeeds(needs, fleet(), fleetEvent(event))));
      return needs;
    },
    needsOfNode: (nodeId) => needsOfNode(fleet(), nodeId),
    sets: () => withPauses(setsOf(fleet())),
    drift: async (set) => (hasSet(fleet(), set) ? withPauses(driftOf(fleet(), set)) : undefined),
    base: (set) => baseOf(fleet().singletons.fleet.value, set),
    revertOf: (entryId) => activeRevert(fleet().reverts, entryId),
    confirmationOf: (entryId) => confirmationOf(fleet(), entryId),
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

/** @returns a function that gives the keys (`listenerKey`) of a node's listeners; none for an unknown node */
function createLiveListeners(fleet: () => Fleet): (nodeId: string) => ReadonlySet<string> {
  const known = createLru<{ readonly generation: number; readonly live: ReadonlySet<string> }>(tuning.rememberedNodes);
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

/** The nodes in the natural order of their names; sorting ten thousand takes some 20 ms, so the last list is kept. */
function createNodeNames(fleet: () => Fleet): () => readonly NodeName[] {
  let last: { readonly revision: number; readonly names: readonly NodeName[] } | undefined;
  return () => {
    const revision = fleet().revision.value;
    if (last?.revision !== revision) last = { revision, names: sortedNames(fleet().tables.node.values()) };
    return last.names;
  };
}

function sortedNames(nodes: Iterable<NodeName>): readonly NodeName[] {
  return Array.from(nodes, ({ id, name }) => ({ id, name, key: sortKey(name) }))
    .sort((a, b) => compareText(a.key, b.key) || compareText(a.id, b.id))
    .map(({ id, name }) => ({ id, name }));
}

/** The counts are at least as new as the fold at the call. */
function createResourceCounts(fleet: () => Fleet, clock: Clock): FleetQueries['resourceCounts'] {
  const count = (): Promise<ResourceCounts> => withPauses(countResources(fleet(), clock.now()));
  return createShared(count, {
    stamp: () => fleet().revision.value,
    isFresh: ({ stamp, begunAt }) =>
      stamp === fleet().revision.value && clock.monotonic() - begunAt < tuning.countsReuseMs,
    now: clock.monotonic,
  });
}

function confirmationOf(fleet: Fleet, entryId: string): EntryConfirmation | null {
  const id = fleet.idOfName(confirmationKey.type, entryId);
  const found = id === undefined ? undefined : fleet.get(confirmationKey, id);
  if (found === undefined) return null;
  const isConfirmed = found.state === 'confirmed';
  return {
    until: timestamp(waitsUntil(found, found.updated_at)),
    confirmed_at: isConfirmed ? found.ended_at : null,
    confirmed_by: isConfirmed ? found.ended_by : null,
    error: found.error,
  };
}

/**
 * Queries on the committed fleet, all from memory. `src/reports/` has what agents report. Implements
 * `docs/architecture.md#read-models` and, from `docs/contract/rest.md`, the intent in `#port-management` and `#nodes`
 * and the counts of resources in `#dashboard`.
 */
import { chainKey, type ChainState } from '../../domain/chain/chain.js';
import { activeRevert } from '../../domain/aggregate/reverts.js';
import { compileNode } from '../../domain/compile/compile-node.js';
import { addNeeds, needsOf, needsOfNode } from '../../domain/compile/needs.js';
import { planDeploy } from '../../domain/compile/plan.js';
import { confirmationKey, waitsUntil } from '../../domain/confirmation/confirmation.js';
import { driftOf, hasSet, setsOf } from '../../domain/fleet-file/drift.js';
import { baseOf } from '../../domain/fleet-set/declaration.js';
import { countResources, type ResourceCounts } from '../../domain/fleet/counts.js';
import { firstReferrers, referrersOf } from '../../domain/fleet/referrers.js';
import { freePorts } from '../../domain/listeners/free-ports.js';
import { intendedLinks, linksOfNode } from '../../domain/port-table/intended-links.js';
import { liveListeners, portRows } from '../../domain/port-table/port-table.js';
import type { NodeState } from '../../domain/node/node.js';
import type { Feature, Needs } from '../../domain/snapshot/features.js';
import { splitOwner } from '../../domain/references/references.js';
import { upstreamKey } from '../../domain/upstream/upstream.js';
import { timestamp, type Clock } from '../../kernel/clock.js';
import type { RecordedEvent } from '../../kernel/event.js';
import { createLru } from '../../kernel/lru.js';
import { forEach, withPauses } from '../../kernel/pieces.js';
import { createShared } from '../../kernel/shared.js';
import { fleetEvent, resourceTypes, type AnyState } from '../../domain/fleet/resources.js';
import type { EntryConfirmation, ResourceQueries, WholeFleet } from '../port.js';
import { tuning } from '../tuning.js';
import type { CommittedFleet } from './committed-fleet.js';
import { allResourceQueries, resourceQueries } from './resources.js';
import type { Fleet } from '../../domain/fleet/fleet.js';

export type FleetQueries = ReturnType<typeof fleetQueries>;

export function fleetQueries({ fleet }: Pick<CommittedFleet, 'fleet'>, clock: Clock) {
  const nodes = resourceQueries('node', fleet) as ResourceQueries<NodeState>;
  return {
    node: (nodeId: string) => fleet().tables.node.get(nodeId),
    chain: (chainId: string) => fleet().tables.l4_chain.get(chainId),
    chains: () => fleet().tables.l4_chain.values(),
    upstream: (upstreamId: string) => fleet().tables.l4_upstream.get(upstreamId),
    /** The chains that name an upstream in either definition, unordered. */
    chainsWith: (upstreamId: string) => chainsWith(fleet(), upstreamId),
    upstreams: () => fleet().tables.l4_upstream.values(),
    nameOf: (type: string, id: string) => fleet().nameOf(type, id),
    whole: () => wholeFleet(fleet()),
    rollouts: () => fleet().tables.rollout.values(),
    settings: () => fleet().singletons.connectivity.value,
    credentials: () => fleet().tables.credential.values(),
    nodes,
    /** Resources whose answers show only the folded state. */
    resources: allResourceQueries(fleet),
    /** The resources that refer to one, in their current or deployed definition, by type, name and id. */
    referrers: (type: string, id: string) => referrersOf(fleet(), type, id),
    /** The first referrers, and their total. */
    firstReferrers: (type: string, id: string, count: number) => firstReferrers(fleet(), type, id, count),
    nodeIds: () => fleet().tables.node.ids(),
    /** All nodes, by name, then id. */
    allNodes: () => nodes.list({ page: 1, pageSize: Number.MAX_SAFE_INTEGER, sort: 'name' }).items,
    rollout: (id: string) => fleet().tables.rollout.get(id),
    /** The rollout that has not yet released the node's wave. */
    heldBy: (nodeId: string, applied?: number) => fleet().heldBy(nodeId, applied),
    /** The intended listeners of a node, with policies; none for an unknown node. */
    portRows: (nodeId: string) => portRows(fleet(), nodeId),
    /** A few free ports of a node. */
    freePorts: (nodeId: string, transport: 'tcp' | 'udp') => freePorts(fleet(), nodeId, transport),
    liveListeners: createLiveListeners(fleet),
    /** The intended links from a node to others; none for an unknown node. */
    links: (nodeId: string) => intendedLinks(fleet(), nodeId),
    /** The same, and the links from others to it. */
    linksOfNode: (nodeId: string) => linksOfNode(fleet(), nodeId),
    resourceCounts: createResourceCounts(fleet, clock),
    /** The newest generation of a node, or undefined for an unknown node. */
    generation: (nodeId: string) => fleet().generationOf(nodeId),
    /** The snapshot of that generation; undefined for an unknown node. Secrets are sealed. @throws Error if it cannot be compiled */
    newest: (nodeId: string) => compileNode(fleet(), nodeId),
    plan: (chainId: string) => planDeploy(fleet(), chainId),
    /** What a resource needs of agents, see `needsOf`. */
    needs: (type: string, id: string, definition: 'current' | 'deployed') => needsOf(fleet(), type, id, definition),
    /** What committed events ask of agents. Collected in slices. */
    async needsOfEvents(events: Iterable<RecordedEvent>): Promise<Needs> {
      const needs = new Map<string, Set<Feature>>();
      await withPauses(forEach(events, tuning.eventsPerSlice, (event) => addNeeds(needs, fleet(), fleetEvent(event))));
      return needs;
    },
    /** What the newest snapshot of a node needs of its agent. */
    needsOfNode: (nodeId: string) => needsOfNode(fleet(), nodeId),
    /** The sets of the fleet file, by name. Found in slices. */
    sets: () => withPauses(setsOf(fleet())),
    /** The drift of a set since its last apply; undefined for an unknown set. Found in slices. */
    drift: async (set: string) => (hasSet(fleet(), set) ? withPauses(driftOf(fleet(), set)) : undefined),
    /** The apply that is the base of a set's drift. */
    base: (set: string) => baseOf(fleet().singletons.fleet.value, set),
    /** The revert of a fleet entry that is in effect. */
    revertOf: (entryId: string) => activeRevert(fleet().reverts, entryId),
    /** The outcome of an entry's change that a person has to confirm; null for any other entry. */
    confirmationOf: (entryId: string) => confirmationOf(fleet(), entryId),
    /** Revision of `svc-fleet` that the committed fleet has reached; -1 for an empty log. */
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

/** @returns a function that counts each resource, in slices, at least as new as the fold at the time of the call */
function createResourceCounts(fleet: () => Fleet, clock: Clock): () => Promise<ResourceCounts> {
  const count = createShared(() => withPauses(countResources(fleet(), clock.now())));
  let last: { readonly revision: number; readonly at: number; readonly counts: Promise<ResourceCounts> } | undefined;
  return () => {
    const [revision, at] = [fleet().revision.value, clock.monotonic()];
    if (last?.revision !== revision || at - last.at >= tuning.countsReuseMs) last = { revision, at, counts: count() };
    return last.counts;
  };
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

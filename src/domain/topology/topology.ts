/**
 * The fleet as a picture: nodes, or groups of nodes, and the links between them that deployed chains run over. Pure. Implements
 * `docs/contract/rest.md#topology`.
 */
import { sortedBy } from '../../kernel/compare-text.js';
import { getOrMake } from '../../kernel/maps.js';
import { forEach } from '../../kernel/pieces.js';
import { healthStates, type ChainHealth } from '../chain/health.js';
import { sortKey } from '../resource/meta.js';

/** The value of a label; null for a node without it. */
export type GroupValue = string | null;

export interface SeenNode {
  readonly id: string;
  readonly name: string;
  readonly group: GroupValue;
  readonly status: 'pending' | 'online' | 'offline';
  /** Whether it has rejected its newest generation. */
  readonly isRejected: boolean;
}

/** A chain that is deployed and enabled. */
export interface SeenChain {
  readonly state: ChainHealth['state'];
  /** Ids of its nodes, in the direction of traffic. */
  readonly nodes: readonly string[];
  /** Round trip in milliseconds from each node to the next one; null where none was measured. */
  readonly roundTrips: readonly (number | null)[];
}

export interface Seen {
  /** By name. */
  readonly nodes: readonly SeenNode[];
  readonly chains: readonly SeenChain[];
  /** Keeps only what is not online, has rejected, or is on a chain that is down or degraded. */
  readonly onlyWrong: boolean;
}

export interface DrawnNode extends SeenNode {
  readonly chains: { readonly total: number; readonly down: number };
}

export interface DrawnLink<Place> {
  readonly from: Place;
  readonly to: Place;
  readonly chains: number;
  /** The worst of the chains. */
  readonly state: ChainHealth['state'];
  /** The largest of the chains. */
  readonly rtt_ms: number | null;
}

export interface DrawnGroup {
  readonly value: GroupValue;
  readonly nodes: number;
  readonly by_status: { readonly [S in SeenNode['status']]: number };
  readonly rejected: number;
  readonly chains_down: number;
}

type Mutable<T> = { -readonly [F in keyof T]: T[F] };

const perPiece = 2_000;

/** The groups by name, that of nodes without the label last, and the links between different ones. */
export function* drawGroups(
  seen: Seen,
): Generator<void, { readonly groups: readonly DrawnGroup[]; readonly links: readonly DrawnLink<GroupValue>[] }> {
  const nodes = yield* keptNodes(seen);
  const groups = new Map<GroupValue, Mutable<DrawnGroup> & { readonly by_status: Mutable<DrawnGroup['by_status']> }>();
  yield* forEach(nodes, perPiece, ({ group: value, status, isRejected }) => {
    const by_status = { online: 0, offline: 0, pending: 0 };
    const group = getOrMake(groups, value, () => ({ value, nodes: 0, by_status, rejected: 0, chains_down: 0 }));
    group.nodes += 1;
    group.by_status[status] += 1;
    if (isRejected) group.rejected += 1;
  });
  const groupOf = new Map(nodes.map(({ id, group }) => [id, group]));
  yield* forEach(seen.chains, perPiece, (chain) => {
    if (chain.state !== 'down') return;
    for (const value of new Set(chain.nodes.map((id) => groupOf.get(id)))) {
      const group = value === undefined ? undefined : groups.get(value);
      if (group !== undefined) group.chains_down += 1;
    }
  });
  const named = [...groups.values()].filter(({ value }) => value !== null);
  const unnamed = [...groups.values()].filter(({ value }) => value === null);
  const sorted = [...sortedBy(named, ({ value }) => sortKey(value ?? '')), ...unnamed];
  yield;
  const links = yield* drawLinks(seen, new Map(sorted.map(({ value }, place) => [value, place])), groupOf);
  return { groups: sorted, links };
}

/**
 * The nodes of a group and their direct neighbours by name, and all links among these.
 * @param group undefined: all nodes
 */
export function* drawNodes(
  seen: Seen,
  group: GroupValue | undefined,
): Generator<void, { readonly nodes: readonly DrawnNode[]; readonly links: readonly DrawnLink<string>[] }> {
  const nodes = yield* keptNodes(seen);
  const places = new Map(nodes.map(({ id }, place) => [id, place]));
  yield;
  const links = yield* drawLinks(seen, places, new Map(nodes.map(({ id }) => [id, id])));
  if (group === undefined) return { nodes, links };
  const members = new Set(nodes.filter((node) => node.group === group).map(({ id }) => id));
  const shown = new Set(members);
  for (const { from, to } of links) {
    if (members.has(from)) shown.add(to);
    if (members.has(to)) shown.add(from);
  }
  return {
    nodes: nodes.filter(({ id }) => shown.has(id)),
    links: links.filter(({ from, to }) => shown.has(from) && shown.has(to)),
  };
}

const isUnwell = ({ state }: SeenChain): boolean => state === 'down' || state === 'degraded';

function* keptNodes({ nodes, chains, onlyWrong }: Seen): Generator<void, readonly DrawnNode[]> {
  const counts = new Map<string, { total: number; down: number; unwell: number }>();
  yield* forEach(chains, perPiece, (chain) => {
    for (const id of chain.nodes) {
      const count = getOrMake(counts, id, () => ({ total: 0, down: 0, unwell: 0 }));
      count.total += 1;
      if (chain.state === 'down') count.down += 1;
      if (isUnwell(chain)) count.unwell += 1;
    }
  });
  const kept: DrawnNode[] = [];
  yield* forEach(nodes, perPiece, (node) => {
    const { total, down, unwell } = counts.get(node.id) ?? { total: 0, down: 0, unwell: 0 };
    const isWrong = node.status !== 'online' || node.isRejected || unwell > 0;
    if (isWrong || !onlyWrong) kept.push({ ...node, chains: { total, down } });
  });
  return kept;
}

/**
 * The links between different places, in the order of these.
 * @param order the number of each place
 * @param placeOf by node; a node without one was deleted meanwhile
 */
function* drawLinks<Place>(
  { chains, onlyWrong }: Seen,
  order: ReadonlyMap<Place, number>,
  placeOf: ReadonlyMap<string, Place>,
): Generator<void, readonly DrawnLink<Place>[]> {
  const links = new Map<Place, Map<Place, Mutable<DrawnLink<Place>>>>();
  yield* forEach(chains, perPiece, (chain) => {
    if (onlyWrong && !isUnwell(chain)) return;
    /** A chain counts once for a link that it takes several times. */
    const counted = new Set<object>();
    for (const [index, rtt_ms] of chain.roundTrips.entries()) {
      const [from, to] = [placeOf.get(chain.nodes[index] ?? ''), placeOf.get(chain.nodes[index + 1] ?? '')];
      if (from === undefined || to === undefined || from === to) continue;
      const outgoing = getOrMake(links, from, () => new Map());
      const link = getOrMake(outgoing, to, () => ({ from, to, chains: 0, state: 'ok' as const, rtt_ms: null }));
      if (!counted.has(link)) link.chains += 1;
      counted.add(link);
      link.state = worse(link.state, chain.state);
      if (rtt_ms !== null) link.rtt_ms = Math.max(link.rtt_ms ?? 0, rtt_ms);
    }
  });
  const orderOf = (place: Place): number => order.get(place) ?? 0;
  const sorted = [...links.entries()].sort(([a], [b]) => orderOf(a) - orderOf(b));
  yield;
  const all: DrawnLink<Place>[] = [];
  yield* forEach(sorted, perPiece, ([, outgoing]) => {
    all.push(...[...outgoing.values()].sort((a, b) => orderOf(a.to) - orderOf(b.to)));
  });
  return all;
}

function worse(a: ChainHealth['state'], b: ChainHealth['state']): ChainHealth['state'] {
  if (a === 'ok' || b === 'ok') return a === 'ok' ? b : a;
  return healthStates.indexOf(b) < healthStates.indexOf(a) ? b : a;
}

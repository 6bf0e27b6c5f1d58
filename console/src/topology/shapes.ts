/**
 * What the topology draws of an answer of the API: a shape for each group or node, with mood and words. Pure.
 * `layout.ts` places them.
 */
import type { Mood } from '../shared/ui/state.js';
import { known } from '../shared/ui/states.js';
import type { Topology } from './topology.js';
import { text } from './topology.text.js';

export interface Shape {
  /** The node's id, or the value of the label; empty for nodes without it. */
  readonly id: string;
  readonly kind: 'group' | 'node';
  /** Null for nodes without the label. */
  readonly name: string | null;
  readonly mood: Mood;
  readonly state: string;
  readonly chains: number | null;
  /** A node of another group, which the open one is linked to. */
  readonly neighbour: boolean;
}

export interface Line {
  readonly from: string;
  readonly to: string;
  readonly chains: number;
  readonly state: 'ok' | 'degraded' | 'down' | 'unknown';
  /** The largest round trip in milliseconds. */
  readonly rtt_ms: number | null;
}

export interface Picture {
  readonly shapes: readonly Shape[];
  readonly lines: readonly Line[];
}

/** @param group the open group; undefined where none is */
export function pictureOf(topology: Topology, group: string | undefined): Picture {
  if ('groups' in topology) {
    return {
      shapes: topology.groups.map(groupShape),
      lines: topology.links.map(({ from, to, ...link }) => ({ ...link, from: from ?? '', to: to ?? '' })),
    };
  }
  return {
    shapes: topology.nodes.map((node) => nodeShape(node, group)),
    lines: topology.links.map(({ from_node_id: from, to_node_id: to, ...link }) => ({ ...link, from, to })),
  };
}

type Group = Extract<Topology, { readonly groups: unknown }>['groups'][number];
type Node = Extract<Topology, { readonly nodes: unknown }>['nodes'][number];

function groupShape({ value, nodes: size, by_status: status, rejected, chains_down: down }: Group): Shape {
  const troubled = status.offline + rejected;
  const mood =
    status.offline === size && size > 0
      ? 'bad'
      : troubled + down > 0
        ? 'warning'
        : status.online === 0
          ? 'idle'
          : 'good';
  const state = [
    ...(status.offline > 0 ? [text.offline(status.offline)] : []),
    ...(rejected > 0 ? [text.rejected(rejected)] : []),
    ...(down > 0 ? [text.chainsDown(down)] : []),
    ...(status.pending > 0 ? [text.pending(status.pending)] : []),
  ];
  return {
    id: value ?? '',
    kind: 'group',
    name: value,
    mood,
    state: [text.nodes(size), ...(state.length === 0 ? [text.allWell] : state)].join(', '),
    chains: null,
    neighbour: false,
  };
}

function nodeShape({ id, name, status, apply, chains, group: own }: Node, group: string | undefined): Shape {
  const rejects = apply === 'rejected';
  const [mood, word] = rejects ? known('apply', apply) : known('node', status);
  const isWell = mood === 'good';
  return {
    id,
    kind: 'node',
    name,
    mood: isWell && chains.down > 0 ? 'warning' : isWell && apply === 'pushed' ? 'busy' : mood,
    state: [rejects ? text.rejects : word, ...(chains.down > 0 ? [text.chainsDown(chains.down)] : [])].join(', '),
    chains: chains.total,
    neighbour: group !== undefined && (own ?? '') !== group,
  };
}

/** More are grouped until somebody says otherwise. */
const mostUngrouped = 40;
/** More are only drawn in groups. */
export const mostDrawn = 1_000;

/**
 * @param asked the key in the address; undefined without one, `ungrouped` to draw each node
 * @param keys those that most nodes have come first
 * @returns the key to group by; undefined for none
 */
export function groupedBy(
  asked: string | undefined,
  ungrouped: string,
  nodes: number,
  keys: readonly string[],
): string | undefined {
  if (asked === ungrouped) return nodes > mostDrawn ? keys[0] : undefined;
  return asked ?? (nodes > mostUngrouped ? keys[0] : undefined);
}

/** Whether a shape matches a search. @param held the groups that hold matching nodes */
export const isMeant = ({ id, name, kind }: Shape, q: string, held: ReadonlySet<string>): boolean =>
  (name ?? '').toLowerCase().includes(q.toLowerCase()) || (kind === 'group' && held.has(id));

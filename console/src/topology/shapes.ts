/**
 * What the topology draws: nodes, or groups of them, each with the worst of its states, and one line for all links between
 * two of them. Pure. Where they stand is in `layout.ts`.
 */
import type { Mood } from '../shared/ui/state.js';
import type { Link, Node } from './topology.js';

export interface Shape {
  /** The node's id, or the value of the label. */
  readonly id: string;
  /** Null for nodes without the label. */
  readonly name: string | null;
  readonly nodes: readonly Node[];
  readonly mood: Mood;
  /** How many of its nodes are offline or reject their configuration. */
  readonly troubled: number;
}

export interface Line {
  readonly from: string;
  readonly to: string;
  readonly count: number;
  /** The shortest round trip in milliseconds that an agent measured; null without one. */
  readonly rttMs: number | null;
  /** The largest lost share, 0 to 1; null where nothing was measured. */
  readonly loss: number | null;
}

function moodOf({ status, apply }: Node): Mood {
  if (apply.state === 'rejected' || status === 'offline') return 'bad';
  if (status === 'pending') return 'idle';
  return apply.state === 'pushed' ? 'busy' : 'good';
}

const worst: readonly Mood[] = ['bad', 'warning', 'busy', 'good', 'idle'];

/** @param groupBy the key of a label; undefined for one shape for each node */
export function shapesOf(nodes: readonly Node[], groupBy: string | undefined): readonly Shape[] {
  const groups = new Map<string, { name: string | null; nodes: Node[] }>();
  for (const node of nodes) {
    const value = groupBy === undefined ? undefined : node.labels[groupBy];
    const id = groupBy === undefined ? node.id : `${groupBy}=${value ?? ''}`;
    const name = groupBy === undefined ? node.name : (value ?? null);
    const group = groups.get(id);
    if (group === undefined) groups.set(id, { name, nodes: [node] });
    else group.nodes.push(node);
  }
  return [...groups].map(([id, { name, nodes: members }]) => {
    const moods = members.map(moodOf);
    const mood = worst.find((one) => moods.includes(one)) ?? 'idle';
    return { id, name, nodes: members, mood, troubled: moods.filter((one) => one === 'bad').length };
  });
}

export function linesOf(shapes: readonly Shape[], links: readonly Link[]): readonly Line[] {
  const shapeOf = new Map(shapes.flatMap(({ id, nodes }) => nodes.map((node) => [node.id, id] as const)));
  const lines = new Map<string, Line>();
  for (const { from_node_id, to_node_id, rtt_ms, loss_ratio } of links) {
    const [from, to] = [shapeOf.get(from_node_id), shapeOf.get(to_node_id)];
    if (from === undefined || to === undefined || from === to) continue;
    const key = `${from} ${to}`;
    const { count = 0, rttMs = null, loss = null } = lines.get(key) ?? {};
    lines.set(key, {
      from,
      to,
      count: count + 1,
      rttMs: least(rttMs, rtt_ms, Math.min),
      loss: least(loss, loss_ratio, Math.max),
    });
  }
  return [...lines.values()];
}

/** One of two values that may be missing. */
function least(a: number | null, b: number | null, choose: (a: number, b: number) => number): number | null {
  if (a === null) return b;
  return b === null ? a : choose(a, b);
}

/** Whether a search means the shape. @param q in lower case */
export const isMeant = ({ name, nodes }: Shape, q: string): boolean =>
  (name ?? '').toLowerCase().includes(q) ||
  nodes.some(
    (node) =>
      node.name.toLowerCase().includes(q) ||
      Object.entries(node.labels).some(([key, value]) => `${key}:${value}`.toLowerCase().includes(q)),
  );

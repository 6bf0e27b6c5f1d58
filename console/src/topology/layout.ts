/**
 * Where shapes stand: those that dial to the left of what they dial, in columns; what no link reaches comes last. Pure, and
 * the same for the same fleet, so that nothing jumps when a state changes.
 */
import type { Line, Shape } from './shapes.js';

export interface Placed {
  readonly shape: Shape;
  readonly x: number;
  readonly y: number;
}

const column = 280;
const row = 84;
/** A taller column goes on beside itself. */
const tallest = 24;

export function placed(shapes: readonly Shape[], lines: readonly Line[]): readonly Placed[] {
  const ranks = ranksOf(lines);
  const columns = new Map<number, Shape[]>();
  const last = Math.max(-1, ...ranks.values()) + 1;
  for (const shape of shapes) {
    const rank = ranks.get(shape.id) ?? last;
    columns.set(rank, [...(columns.get(rank) ?? []), shape]);
  }
  let x = 0;
  return [...columns]
    .sort(([a], [b]) => a - b)
    .flatMap(([, members]) => {
      const left = x;
      x += Math.ceil(members.length / tallest) * column;
      return members.map((shape, index) => ({
        shape,
        x: left + Math.floor(index / tallest) * column,
        y: (index % tallest) * row,
      }));
    });
}

/** How many dials lie before each end of a line, at most; a circle of dials is cut where it closes. */
function ranksOf(lines: readonly Line[]): ReadonlyMap<string, number> {
  const callers = new Map<string, string[]>();
  for (const { from, to } of lines) {
    if (!callers.has(from)) callers.set(from, []);
    callers.set(to, [...(callers.get(to) ?? []), from]);
  }
  const ranks = new Map<string, number>();
  const open = new Set<string>();
  const rankOf = (id: string): number => {
    const known = ranks.get(id);
    if (known !== undefined) return known;
    if (open.has(id)) return -1;
    open.add(id);
    const rank = 1 + Math.max(-1, ...(callers.get(id) ?? []).map(rankOf));
    open.delete(id);
    ranks.set(id, rank);
    return rank;
  };
  for (const id of callers.keys()) rankOf(id);
  return ranks;
}

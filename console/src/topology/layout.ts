/**
 * The places of shapes, in columns: those that dial are left of what they dial; shapes without links come last. Pure,
 * and the same for the same fleet, so that nothing jumps when a state changes.
 */
import type { Line, Shape } from './shapes.js';

export interface Placed {
  readonly shape: Shape;
  readonly x: number;
  readonly y: number;
}

/** The distance from one shape to the next. */
export interface Cell {
  readonly column: number;
  readonly row: number;
}

export const roomy: Cell = { column: 280, row: 84 };
/** For more than `mostRoomy`. */
export const small: Cell = { column: 124, row: 28 };
export const mostRoomy = 40;

/** @param columns how many at most, however tall they become */
export function placed(
  shapes: readonly Shape[],
  lines: readonly Line[],
  { column, row }: Cell,
  columns: number,
): readonly Placed[] {
  return columnsOf(shapes, lines, columns).flatMap((members, left) =>
    members.map((shape, top) => ({ shape, x: left * column, y: top * row })),
  );
}

/**
 * Each rank has its own columns, as few as fit. If there are more ranks than columns, as in a long circle, they follow
 * one another without a gap; otherwise the picture would be too wide to read.
 */
function columnsOf(shapes: readonly Shape[], lines: readonly Line[], columns: number): readonly (readonly Shape[])[] {
  const ranks = rankedShapes(shapes, lines);
  if (ranks.length > columns) return cut(ranks.flat(), Math.ceil(shapes.length / columns));
  let tallest = Math.max(1, Math.ceil(shapes.length / columns));
  while (ranks.reduce((sum, { length }) => sum + Math.ceil(length / tallest), 0) > columns) tallest += 1;
  return ranks.flatMap((members) => cut(members, tallest));
}

const cut = (all: readonly Shape[], length: number): readonly (readonly Shape[])[] =>
  Array.from({ length: Math.ceil(all.length / length) }, (_, part) => all.slice(part * length, (part + 1) * length));

/** The shapes of each rank, from the left. */
function rankedShapes(shapes: readonly Shape[], lines: readonly Line[]): readonly (readonly Shape[])[] {
  const ranks = ranksOf(lines);
  const ranked = new Map<number, Shape[]>();
  const last = Math.max(-1, ...ranks.values()) + 1;
  for (const shape of shapes) {
    const rank = ranks.get(shape.id) ?? last;
    const members = ranked.get(rank);
    if (members === undefined) ranked.set(rank, [shape]);
    else members.push(shape);
  }
  return [...ranked].sort(([a], [b]) => a - b).map(([, members]) => members);
}

/** The fewest dials that lead to each end of a line. A circle that nobody else dials begins at its first member. */
function ranksOf(lines: readonly Line[]): ReadonlyMap<string, number> {
  const dialled = new Map<string, string[]>();
  for (const { from, to } of lines) dialled.set(from, [...(dialled.get(from) ?? []), to]);
  const called = new Set(lines.map(({ to }) => to));
  const ranks = new Map<string, number>();
  const spread = (start: readonly string[]): void => {
    let front = start;
    for (let rank = 0; front.length > 0; rank += 1) {
      for (const id of front) ranks.set(id, rank);
      front = [...new Set(front.flatMap((id) => dialled.get(id) ?? []))].filter((id) => !ranks.has(id));
    }
  };
  spread([...dialled.keys()].filter((id) => !called.has(id)));
  for (const id of dialled.keys()) if (!ranks.has(id)) spread([id]);
  return ranks;
}

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

export interface Grid {
  readonly column: number;
  readonly row: number;
  /** A taller column goes on beside itself. */
  readonly tallest: number;
}

export const roomy: Grid = { column: 280, row: 84, tallest: 24 };
/** More are drawn small, at full size, however tall that is. */
export const mostRoomy = 60;
const small = { column: 124, row: 28 };

/** The grid in which a small picture is no wider than this. */
export function smallGrid(shapes: readonly Shape[], lines: readonly Line[], width: number): Grid {
  const sizes = [...columnsOf(shapes, lines).values()].map(({ length }) => length);
  const columns = Math.max(sizes.length, Math.floor(width / small.column));
  let tallest = Math.max(1, Math.ceil(shapes.length / columns));
  while (sizes.reduce((sum, size) => sum + Math.ceil(size / tallest), 0) > columns) tallest += 1;
  return { ...small, tallest };
}

export function placed(
  shapes: readonly Shape[],
  lines: readonly Line[],
  { column, row, tallest }: Grid,
): readonly Placed[] {
  let x = 0;
  return [...columnsOf(shapes, lines)]
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

/** The shapes by the column that they begin in. */
function columnsOf(shapes: readonly Shape[], lines: readonly Line[]): ReadonlyMap<number, readonly Shape[]> {
  const ranks = ranksOf(lines);
  const columns = new Map<number, Shape[]>();
  const last = Math.max(-1, ...ranks.values()) + 1;
  for (const shape of shapes) {
    const rank = ranks.get(shape.id) ?? last;
    const members = columns.get(rank);
    if (members === undefined) columns.set(rank, [shape]);
    else members.push(shape);
  }
  return columns;
}

/** How few dials lead to each end of a line. A circle that nobody else dials begins at its first member. */
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

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

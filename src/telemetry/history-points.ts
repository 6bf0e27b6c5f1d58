/**
 * Points of history, and how several are packed into one document. A point holds what was counted in its time alone, so
 * points are added up and nothing has to be subtracted. The slot that is still open is kept with the report that it was
 * counted from (`changed-tables.ts`). Pure. Implements decisions 360 and 361.
 */

/** What a point counts; one that is missing was not reported. The order is that of the bits in a packed point. */
export const counted = ['bytes_in', 'bytes_out', 'sessions', 'errors', 'online_ms', 'rtt_us', 'rtts'] as const;
export type Counted = (typeof counted)[number];
/** `rtt_us` is a sum of microseconds over `rtts` measurements. */
export type Point = { readonly [C in Counted]?: number };
/** By their number: milliseconds since the epoch, divided by the step. */
export type Points = ReadonlyMap<number, Point>;

export const slotMs = 5 * 60_000;
export const hourMs = 60 * 60_000;
/** How long points of a slot are kept; they go on as points of an hour. */
export const slotsKeptMs = 24 * hourMs;
export const hoursKeptMs = 30 * 24 * hourMs;

/** What is counted of one slot, by the id of the node, chain or upstream that it is counted for. */
export type OpenSlot = {
  readonly slot: number;
  readonly points: { readonly [resourceId: string]: Point };
};

export function plus(a: Point | undefined, b: Point): Point {
  const sum: { [C in Counted]?: number } = { ...a };
  for (const name of counted) {
    const more = b[name];
    if (more !== undefined) sum[name] = Math.min((sum[name] ?? 0) + more, Number.MAX_SAFE_INTEGER);
  }
  return sum;
}

/**
 * The open slot with what was counted since, and the one before it if that is over. A slot that is older than slots are kept
 * is carried on into the new one: its document may be part of an hour already.
 * @param at of the report, milliseconds since the epoch
 */
export function counting(
  open: OpenSlot | undefined,
  at: number,
  more: ReadonlyMap<string, Point>,
): { readonly open: OpenSlot; readonly over: OpenSlot | undefined } {
  // The clock of another instance may have been ahead.
  const slot = Math.max(Math.floor(at / slotMs), open?.slot ?? 0);
  const isOver = open !== undefined && open.slot < slot && (slot - open.slot) * slotMs < slotsKeptMs;
  const points: Record<string, Point> = isOver ? {} : { ...open?.points };
  for (const [id, point] of more) points[id] = plus(points[id], point);
  return { open: { slot, points }, over: isOver && Object.keys(open.points).length > 0 ? open : undefined };
}

/** Hours from slots. */
export function hoursOf(slots: Points): Points {
  const hours = new Map<number, Point>();
  for (const [slot, point] of slots) {
    const hour = Math.floor((slot * slotMs) / hourMs);
    hours.set(hour, plus(hours.get(hour), point));
  }
  return hours;
}

/**
 * Each point as the distance from the one before it, a byte of bits for what it counts, and each number in groups of seven
 * bits (LEB128).
 * @param first number of the earliest point that the document may hold
 */
export function pack(points: Points, first: number): Uint8Array {
  const bytes: number[] = [];
  let last = first;
  for (const [number, point] of [...points].sort(([a], [b]) => a - b)) {
    writeNumber(bytes, number - last);
    last = number;
    bytes.push(counted.reduce((bits, name, index) => (point[name] === undefined ? bits : bits | (1 << index)), 0));
    for (const name of counted) {
      const value = point[name];
      if (value !== undefined) writeNumber(bytes, Math.max(0, Math.round(value)));
    }
  }
  return Uint8Array.from(bytes);
}

/** The points that `pack` has packed. */
export function unpack(bytes: Uint8Array, first: number): Map<number, Point> {
  const points = new Map<number, Point>();
  let at = 0;
  const readNumber = (): number => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = bytes[at] ?? 0;
      at += 1;
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  };
  for (let number = first; at < bytes.length;) {
    number += readNumber();
    const bits = bytes[at] ?? 0;
    at += 1;
    const point: { [C in Counted]?: number } = {};
    for (const [index, name] of counted.entries()) if ((bits & (1 << index)) !== 0) point[name] = readNumber();
    points.set(number, point);
  }
  return points;
}

/** Numbers are larger than what the operators on bits take. */
function writeNumber(bytes: number[], value: number): void {
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  bytes.push(rest);
}

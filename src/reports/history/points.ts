/**
 * Points of history, and how those of one node are packed into one document. A point holds what was counted in its time
 * alone, so points are added up and nothing has to be subtracted. Pure. Implements decisions 340 and 360.
 */
import { deflateRawSync, inflateRawSync } from 'node:zlib';

/** What a point counts, in the order in which it is packed. */
export const counted = ['bytes_in', 'bytes_out', 'sessions', 'errors', 'online_ms', 'rtt_us', 'rtts'] as const;
export type Counted = (typeof counted)[number];
/** `rtt_us` is a sum of microseconds over `rtts` measurements. */
export type Point = { [C in Counted]: number };
/** What a point grows by. */
export type Growth = { readonly [C in Counted]?: number };
/** By their number: milliseconds since the epoch, divided by the step. */
export type Points = ReadonlyMap<number, Readonly<Point>>;

export const slotMs = 5 * 60_000;
export const hourMs = 60 * 60_000;
/** How long points of a slot are kept; they go on as points of an hour. */
export const slotsKeptMs = 24 * hourMs;
export const hoursKeptMs = 30 * 24 * hourMs;

function nothing(): Point {
  return { bytes_in: 0, bytes_out: 0, sessions: 0, errors: 0, online_ms: 0, rtt_us: 0, rtts: 0 };
}

/** Adds to the point in `points`, which it makes if there is none. */
export function add<K>(points: Map<K, Point>, key: K, growth: Growth): void {
  let point = points.get(key);
  if (point === undefined) points.set(key, (point = nothing()));
  for (const name of counted) {
    const more = growth[name];
    if (more !== undefined) point[name] = Math.min(point[name] + more, Number.MAX_SAFE_INTEGER);
  }
}

/** Hours from slots. */
export function hoursOf(slots: Points): Map<number, Point> {
  const hours = new Map<number, Point>();
  for (const [slot, point] of slots) add(hours, Math.floor((slot * slotMs) / hourMs), point);
  return hours;
}

/**
 * Puts hours that were made of slots beside those that are stored. Counters only grow, so of two versions of an hour the
 * higher one is complete: an hour that is put together again of what is left of its slots stays as it was.
 */
export function joinHours(hours: Map<number, Point>, more: Points): void {
  for (const [hour, point] of more) {
    const known = hours.get(hour) ?? nothing();
    for (const name of counted) known[name] = Math.max(known[name], point[name]);
    hours.set(hour, known);
  }
}

/**
 * Packs the points of several resources. Those of a resource are columns: the distances between their numbers, then each
 * counter. A column is the bytes of its largest value, then of all values the highest bytes, the next ones and so on: what
 * is the same, or small, deflates to nearly nothing.
 * @param first number of the earliest point that there may be
 */
export function pack(series: readonly Points[], first: number): Uint8Array {
  const bytes: number[] = [];
  const writeColumn = (values: readonly number[]): void => {
    const max = Math.max(0, ...values);
    let width = 0;
    for (let scale = 1; scale <= max; scale *= 256) width += 1;
    bytes.push(width);
    for (let scale = 256 ** (width - 1); scale >= 1; scale /= 256) {
      for (const value of values) bytes.push(Math.floor(value / scale) % 256);
    }
  };
  for (const points of series) {
    const sorted = [...points].sort(([a], [b]) => a - b);
    bytes.push(Math.floor(sorted.length / 256), sorted.length % 256);
    writeColumn(sorted.map(([number], index) => number - (sorted[index - 1]?.[0] ?? first)));
    for (const name of counted) writeColumn(sorted.map(([, point]) => point[name]));
  }
  return deflateRawSync(Uint8Array.from(bytes));
}

/** The points that `pack` has packed. @param wanted whether the resource at an index is; the others are passed over */
export function unpack(packed: Uint8Array, first: number, wanted: (index: number) => boolean): Map<number, Point>[] {
  const bytes = inflateRawSync(packed);
  const series: Map<number, Point>[] = [];
  let at = 0;
  for (let index = 0; at < bytes.length; index += 1) {
    const count = bytes.readUInt16BE(at);
    at += 2;
    const readColumn = (): readonly number[] => {
      const width = bytes[at] ?? 0;
      const from = at + 1;
      at = from + width * count;
      if (!wanted(index)) return [];
      return Array.from({ length: count }, (_, row) => {
        let value = 0;
        for (let plane = 0; plane < width; plane += 1) value = value * 256 + (bytes[from + plane * count + row] ?? 0);
        return value;
      });
    };
    const distances = readColumn();
    const columns = counted.map(readColumn);
    let number = first;
    const points = new Map<number, Point>();
    for (const [row, distance] of distances.entries()) {
      number += distance;
      const point = nothing();
      for (const [column, name] of counted.entries()) point[name] = columns[column]?.[row] ?? 0;
      points.set(number, point);
    }
    series.push(points);
  }
  return series;
}

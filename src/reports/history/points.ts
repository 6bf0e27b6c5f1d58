/**
 * Points of history, and how the points of one node are packed into a document. A point counts its own interval only, so points
 * can be added up. Pure. Implements decisions 340 and 360.
 */
import { deflateRawSync, inflateRawSync } from 'node:zlib';

/** The counters of a point, in packing order. */
export const counted = ['bytes_in', 'bytes_out', 'sessions', 'errors', 'online_ms', 'rtt_us', 'rtts'] as const;
export type Counted = (typeof counted)[number];
/** `rtt_us` is a sum of microseconds over `rtts` measurements. */
export type Point = { [C in Counted]: number };
export type Growth = { readonly [C in Counted]?: number };
/** By number: milliseconds since the epoch, divided by the step. */
export type Points = ReadonlyMap<number, Readonly<Point>>;

/** The id under which the sums over all nodes are recorded, both as a resource and as the node that counts it. */
export const fleetSeries = 'fleet';

export const minuteMs = 60_000;
export const minutesKeptMs = 60 * minuteMs;
export const slotMs = 5 * 60_000;
export const hourMs = 60 * 60_000;
/** Retention of five-minute points; older ones are merged into hours. */
export const slotsKeptMs = 24 * hourMs;
export const hoursKeptMs = 30 * 24 * hourMs;

function nothing(): Point {
  return { bytes_in: 0, bytes_out: 0, sessions: 0, errors: 0, online_ms: 0, rtt_us: 0, rtts: 0 };
}

/** Adds to a point, which is created if there is none. */
export function add<K>(points: Map<K, Point>, key: K, growth: Growth): void {
  let point = points.get(key);
  if (point === undefined) points.set(key, (point = nothing()));
  for (const name of counted) {
    const more = growth[name];
    if (more !== undefined) point[name] = Math.min(point[name] + more, Number.MAX_SAFE_INTEGER);
  }
}

export function hoursOf(slots: Points): Map<number, Point> {
  const hours = new Map<number, Point>();
  for (const [slot, point] of slots) add(hours, Math.floor((slot * slotMs) / hourMs), point);
  return hours;
}

/**
 * Joins hours merged from slots with the stored ones. Counters only grow, so the higher of two versions of an hour is complete:
 * merging an hour again from the rest of its slots does not change it.
 */
export function joinHours(hours: Map<number, Point>, more: Points): void {
  for (const [hour, point] of more) {
    const known = hours.get(hour) ?? nothing();
    for (const name of counted) known[name] = Math.max(known[name], point[name]);
    hours.set(hour, known);
  }
}

/**
 * Packs the points of several resources. Each resource is a list of columns: the distances between the numbers of its points,
 * then each counter. A column starts with its width in bytes, followed by the highest bytes of all values, the next ones and
 * so on, because equal or small bytes in a row deflate to nearly nothing.
 * @param first the lowest possible number of a point
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

/** Reverses `pack`. @param wanted false: the resource at this index is skipped */
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

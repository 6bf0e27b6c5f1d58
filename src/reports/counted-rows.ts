/**
 * The counters of a table's rows as one array of numbers, because nearly every heartbeat has the same rows. Totals over the
 * processes of an agent are in `process-totals.ts`. Pure.
 */
import { growthOfRows, withReport, type Counters, type ProcessTotals, type Rows } from './process-totals.js';

/** The counters of listeners, and of links, in the order in which they are packed. */
export const listenerCounters = ['bytes_in', 'bytes_out', 'total_sessions', 'error_sessions'] as const;
export const linkCounters = ['bytes_in', 'bytes_out'] as const;

/** The counters of one report. */
export interface CountedRows {
  /** Distinct. */
  readonly keys: readonly string[];
  /** One for each name of each key, perhaps followed by others; NaN for one that the agent did not report. */
  readonly values: readonly number[];
}

export const noRows: CountedRows = { keys: [], values: [] };

/** A row with its counters in the order of their names. */
export type CounterRow = readonly [key: string, values: readonly number[]];

/** @param last the previous report, whose array of keys is shared if it is the same */
export function packRows(columns: number, rows: readonly CounterRow[], last: CountedRows): CountedRows {
  const isAsBefore = rows.length === last.keys.length && rows.every(([key], row) => key === last.keys[row]);
  const values = rows.flatMap(([, counters]) => counters);
  if (isAsBefore) return { keys: last.keys, values };
  const keys = rows.map(([key]) => key);
  return addUp(columns, keys, values);
}

/** Adds up rows that an agent has reported with the same key. */
export function addUp(columns: number, keys: readonly string[], values: readonly number[]): CountedRows {
  const distinct = [...new Set(keys)];
  if (distinct.length === keys.length) return { keys, values };
  const rowOf = new Map(distinct.map((key, row) => [key, row]));
  const sums = Array.from({ length: distinct.length * columns }, () => Number.NaN);
  for (const [row, key] of keys.entries()) {
    const to = (rowOf.get(key) ?? 0) * columns;
    for (let column = 0; column < columns; column += 1) {
      const [sum = Number.NaN, value = Number.NaN] = [sums[to + column], values[row * columns + column]];
      if (!Number.isNaN(value)) sums[to + column] = Number.isNaN(sum) ? value : Math.min(sum + value, maxCounter);
    }
  }
  return { keys: distinct, values: sums };
}

const maxCounter = Number.MAX_SAFE_INTEGER;

/** A 64-bit counter, capped at the largest number that JSON and JavaScript keep exactly. */
export function wholeNumber(value: bigint): number {
  return Math.min(Number(value), maxCounter);
}

/** More bytes than any link has carried. */
const tooManyBytes = 2n ** 60n;

/** The bytes of a counter; too many are infinite, and `couldCarry` refuses them. */
export function byteCount(value: bigint): number {
  return value > tooManyBytes ? Infinity : wholeNumber(value);
}

/** The counters of a row by name. */
export function countersAt(names: readonly string[], values: readonly number[], row: number): Counters {
  const counters: Record<string, number> = {};
  for (const [column, name] of names.entries()) {
    const value = values[row * names.length + column] ?? Number.NaN;
    if (!Number.isNaN(value)) counters[name] = value;
  }
  return counters;
}

const unpackRows = (names: readonly string[], { keys, values }: CountedRows): Rows =>
  new Map(keys.map((key, row) => [key, countersAt(names, values, row)]));

/** A node's totals after one more report, and the growth of its rows. @param last the counters of the previous report */
export function addReport(
  names: readonly string[],
  totals: ProcessTotals,
  last: CountedRows,
  processId: string,
  rows: CountedRows,
): { readonly totals: ProcessTotals; readonly growth: CountedRows } {
  const { keys } = rows;
  const grown = processId === totals.processId ? growthSince(names, last, rows) : undefined;
  if (grown !== undefined) return { totals, growth: { keys, values: grown } };
  const [before, now] = [unpackRows(names, last), unpackRows(names, rows)];
  const values = [...growthOfRows(totals, before, processId, now)].flatMap(([, growth]) =>
    names.map((name) => growth[name] ?? 0),
  );
  return { totals: withReport(totals, before, processId, now), growth: { keys, values } };
}

/** Undefined if the rows differ or a counter has fallen or is new, which changes the totals. */
function growthSince(names: readonly string[], last: CountedRows, rows: CountedRows): readonly number[] | undefined {
  if (last.keys !== rows.keys) return undefined;
  // Copied at once, because filling a new array takes thirty times as long.
  const growth = rows.values.slice(0, rows.keys.length * names.length);
  for (let at = 0; at < growth.length; at += 1) {
    const value = growth[at] ?? Number.NaN;
    const before = last.values[at] ?? Number.NaN;
    if (!(value >= before) && !(Number.isNaN(value) && Number.isNaN(before))) return undefined;
    growth[at] = value - before || 0;
  }
  return growth;
}

/** More than any link carries in one direction: 1 Tbit/s. */
const maxBytesPerSecond = 1e12 / 8;

/** Whether links can have carried the growth of all rows in this time. The first two columns are bytes in and out. */
export function isPlausible(columns: number, { values }: CountedRows, sinceMs: number): boolean {
  let [bytesIn, bytesOut] = [0, 0];
  for (let at = 0; at < values.length; at += columns) {
    bytesIn += values[at] || 0;
    bytesOut += values[at + 1] || 0;
  }
  return couldCarry(Math.max(bytesIn, bytesOut), sinceMs);
}

export const couldCarry = (bytes: number, sinceMs: number): boolean =>
  bytes <= maxBytesPerSecond * Math.max(1, sinceMs / 1_000);

/** Looks up the counters of a row by its key. */
export function countersIn(
  { keys, values }: CountedRows,
  columns: number,
): (key: string) => readonly number[] | undefined {
  const rowOf = new Map(keys.map((key, row) => [key, row * columns]));
  return (key) => {
    const at = rowOf.get(key);
    return at === undefined ? undefined : values.slice(at, at + columns);
  };
}

/** The sum of each counter over the rows. @param before added to each row */
export function sumOfRows<N extends string>(
  names: readonly N[],
  { keys, values }: CountedRows,
  before?: Rows,
): Record<N, number> {
  const sums = {} as Record<N, number>;
  for (const [column, name] of names.entries()) {
    let sum = 0;
    for (let row = 0; row < keys.length; row += 1) sum += values[row * names.length + column] || 0;
    if (before !== undefined && before.size > 0) for (const key of keys) sum += before.get(key)?.[name] ?? 0;
    sums[name] = Math.min(sum, maxCounter);
  }
  return sums;
}

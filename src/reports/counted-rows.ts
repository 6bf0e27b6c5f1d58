/**
 * The counters of the rows of a table, packed: a table of numbers, since nearly every heartbeat counts the same rows on. What
 * they add up to over the processes of an agent is in `process-totals.ts`. Pure.
 */
import type { Counters, ProcessTotals, Rows } from './process-totals.js';
import { growthOfRows, withReport } from './process-totals.js';

/** The counters of listeners, and of links, in the order in which they are packed. */
export const listenerCounters = ['bytes_in', 'bytes_out', 'total_sessions', 'error_sessions'] as const;
export const linkCounters = ['bytes_in', 'bytes_out'] as const;

/** The counters of one report. */
export interface CountedRows {
  /** Distinct. */
  readonly keys: readonly string[];
  /** As many for each key as there are names; NaN where the agent did not report one. */
  readonly values: Float64Array;
}

export const noRows: CountedRows = { keys: [], values: new Float64Array() };

/** A row as it came: its counters in the order of their names, undefined where the agent did not report one. */
export type CounterRow = readonly [key: string, values: readonly (bigint | undefined)[]];

/**
 * @param rows may repeat a key: an agent may report two rows with one, which are added up
 * @param last the report before it, whose keys are kept where they are the same
 */
export function packRows(names: readonly string[], rows: readonly CounterRow[], last: CountedRows): CountedRows {
  const isAsBefore = rows.length === last.keys.length && rows.every(([key], row) => key === last.keys[row]);
  const keys = isAsBefore ? last.keys : [...new Set(rows.map(([key]) => key))];
  const values = new Float64Array(keys.length * names.length).fill(Number.NaN);
  const rowOf = isAsBefore ? undefined : new Map(keys.map((key, row) => [key, row]));
  for (const [index, [key, counters]] of rows.entries()) {
    let at = (rowOf?.get(key) ?? index) * names.length;
    for (const counter of counters) {
      if (counter !== undefined) {
        const before = values[at] ?? Number.NaN;
        values[at] = Number.isNaN(before) ? wholeNumber(counter) : Math.min(before + Number(counter), mostCounted);
      }
      at += 1;
    }
  }
  return { keys, values };
}

const mostCounted = Number.MAX_SAFE_INTEGER;

/** A 64-bit counter as a number that JSON and JavaScript keep exactly, or the largest of those. */
export function wholeNumber(value: bigint): number {
  return Math.min(Number(value), mostCounted);
}

/** The counters of a row by name. */
export function countersOf(names: readonly string[], values: CounterRow[1]): Counters {
  return Object.fromEntries(
    names.flatMap((name, at) => {
      const value = values[at];
      return value === undefined ? [] : [[name, wholeNumber(value)]];
    }),
  );
}

function unpackRows(names: readonly string[], { keys, values }: CountedRows): Rows {
  return new Map(
    keys.map((key, row) => [
      key,
      countersAt(
        names,
        row,
        (at) => values[at] ?? Number.NaN,
        (value) => !Number.isNaN(value),
      ),
    ]),
  );
}

function countersAt(
  names: readonly string[],
  row: number,
  valueAt: (index: number) => number,
  counts: (value: number) => boolean,
): Counters {
  const counters: Record<string, number> = {};
  for (const [column, name] of names.entries()) {
    const value = valueAt(row * names.length + column);
    if (counts(value)) counters[name] = value;
  }
  return counters;
}

export type RowGrowth = readonly [key: string, growth: Counters];

/**
 * The totals of a node with one more report, and by how much its rows have grown; those that have not are left out.
 * @param last the counters of the report before it
 */
export function countOn(
  names: readonly string[],
  totals: ProcessTotals,
  last: CountedRows,
  processId: string,
  rows: CountedRows,
): { readonly totals: ProcessTotals; readonly growth: readonly RowGrowth[] } {
  if (processId === totals.processId && goesOn(last, rows)) {
    const grownBy = (at: number): number => (rows.values[at] ?? 0) - (last.values[at] ?? 0);
    const growth = rows.keys.map((key, row): RowGrowth => [key, countersAt(names, row, grownBy, (more) => more > 0)]);
    return { totals, growth: growth.filter(hasGrown) };
  }
  const [before, now] = [unpackRows(names, last), unpackRows(names, rows)];
  return {
    totals: withReport(totals, before, processId, now),
    growth: [...growthOfRows(totals, before, processId, now)].filter(hasGrown),
  };
}

const hasGrown = ([, growth]: RowGrowth): boolean => Object.keys(growth).length > 0;

/** Whether a report has the rows and counters of the one before it, and none that has fallen: then the totals stay. */
function goesOn(last: CountedRows, rows: CountedRows): boolean {
  if (last.keys !== rows.keys) return false;
  return rows.values.every((value, at) => {
    const before = last.values[at] ?? Number.NaN;
    return value >= before || (Number.isNaN(value) && Number.isNaN(before));
  });
}

/** The sums of a counter over the rows, those of earlier processes included and of rows that are gone not. */
export function sumOfRows(
  names: readonly string[],
  { before }: ProcessTotals,
  { keys, values }: CountedRows,
): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const [column, name] of names.entries()) {
    let sum = 0;
    for (let at = column; at < values.length; at += names.length) sum += values[at] || 0;
    if (before.size > 0) for (const key of keys) sum += before.get(key)?.[name] ?? 0;
    sums[name] = Math.min(sum, Number.MAX_SAFE_INTEGER);
  }
  return sums;
}

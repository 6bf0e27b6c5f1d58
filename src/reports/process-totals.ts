/**
 * Sums over the agent processes of one node. Counters start at 0 with each process, and with each row (a listener, a link);
 * the sums shown continue from the earlier ones, so they never fall. Pure. Implements `docs/contract/agent-protocol.md#heartbeats-commands-metrics`.
 */

/** By name; a missing one was not reported. */
export type Counters = { readonly [name: string]: number };
export type Rows = ReadonlyMap<string, Counters>;

export interface ProcessTotals {
  /** The process that reported last, lower-case hex; empty for an agent that does not name its process. */
  readonly processId: string;
  /** The amounts to add to the process's own counters. */
  readonly before: Rows;
  /** The counters of rows that the process no longer reports. */
  readonly absent: Rows;
  /** The sums of rows that only earlier processes reported. */
  readonly gone: Counters;
}

/** Shared by most nodes, which have none. */
const none: Rows = new Map();
export const noTotals: ProcessTotals = { processId: '', before: none, absent: none, gone: {} };

/** How many rows of a node are remembered after they are no longer reported. */
const rememberedRows = 1024;

export function sumOf(a: Counters, b: Counters): Counters {
  const sum: Record<string, number> = { ...a };
  for (const [name, value] of Object.entries(b))
    sum[name] = Math.min((sum[name] ?? 0) + value, Number.MAX_SAFE_INTEGER);
  return sum;
}

/** The totals after one more report. @param last the rows of the previous report */
export function withReport(totals: ProcessTotals, last: Rows, processId: string, rows: Rows): ProcessTotals {
  const isNew = processId !== totals.processId;
  const known = new Map([...totals.absent, ...last]);
  const before = new Map<string, Counters>();
  const absent = new Map<string, Counters>();
  for (const [key, counters] of rows) {
    let offset = totals.before.get(key) ?? {};
    for (const [name, value] of Object.entries(known.get(key) ?? {})) {
      if (isNew || (counters[name] ?? value) < value) offset = sumOf(offset, { [name]: value });
    }
    if (Object.keys(offset).length > 0) before.set(key, offset);
  }
  let { gone } = totals;
  for (const [key, counters] of known) {
    if (rows.has(key)) continue;
    const offset = totals.before.get(key) ?? {};
    if (isNew || absent.size >= rememberedRows) gone = sumOf(gone, sumOf(counters, offset));
    else {
      absent.set(key, counters);
      before.set(key, offset);
    }
  }
  return { processId, before: before.size > 0 ? before : none, absent: absent.size > 0 ? absent : none, gone };
}

/** The sums of all rows that are no longer reported. */
export function absentSums({ before, absent, gone }: ProcessTotals): Counters {
  return [...absent].reduce((sum, [key, counters]) => sumOf(sum, sumOf(counters, before.get(key) ?? {})), gone);
}

/** The growth of a counter since the previous report. @param before undefined without one of the same process */
export function growthOf(before: number | undefined, now: number): number {
  return before === undefined || now < before ? now : now - before;
}

/** The growth of each row with one more report. Parameters as in `withReport`. */
export function* growthOfRows(
  totals: ProcessTotals,
  last: Rows,
  processId: string,
  rows: Rows,
): Generator<readonly [key: string, growth: Counters]> {
  const isNew = processId !== totals.processId;
  for (const [key, counters] of rows) {
    const before = isNew ? undefined : (last.get(key) ?? totals.absent.get(key));
    const growth: Record<string, number> = {};
    for (const [name, value] of Object.entries(counters)) {
      const more = growthOf(before?.[name], value);
      if (more > 0) growth[name] = more;
    }
    yield [key, growth];
  }
}

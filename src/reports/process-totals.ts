/**
 * Sums of what the agent processes of one node have counted. The counters of a process begin at 0 with it, and those of a
 * row (a listener, a link) with the row; what is shown goes on from what was shown before, so it never falls. Pure.
 * Implements `docs/contract/agent-protocol.md#heartbeats-commands-metrics`.
 */

/** Counters of a row by name; a missing one was not reported. */
export type Counters = { readonly [name: string]: number };
export type Rows = ReadonlyMap<string, Counters>;

export interface ProcessTotals {
  /** Of the process that reported last, lower-case hex; empty for an agent that does not name its process. */
  readonly processId: string;
  /** What has to be added to what the process reports of a row. */
  readonly before: Rows;
  /** The counters of rows that the process has reported, and reports no longer. */
  readonly absent: Rows;
  /** The sums of rows of earlier processes that this one has not reported. */
  readonly gone: Counters;
}

/** Most nodes have none, and share it. */
const none: Rows = new Map();
export const noTotals: ProcessTotals = { processId: '', before: none, absent: none, gone: {} };

/** Rows of a node that are remembered although they are no longer reported. */
const rememberedRows = 1024;

export function sumOf(a: Counters, b: Counters): Counters {
  const sum: Record<string, number> = { ...a };
  for (const [name, value] of Object.entries(b))
    sum[name] = Math.min((sum[name] ?? 0) + value, Number.MAX_SAFE_INTEGER);
  return sum;
}

/**
 * The totals with one more report.
 * @param last the rows of the report before it
 * @param processId of the process that made the report
 */
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

/** The sums of all rows that are not reported. */
export function absentSums({ before, absent, gone }: ProcessTotals): Counters {
  return [...absent].reduce((sum, [key, counters]) => sumOf(sum, sumOf(counters, before.get(key) ?? {})), gone);
}

/**
 * By how much a counter has grown since the report before.
 * @param before undefined when another process made that report, or nobody did
 */
export function growthOf(before: number | undefined, now: number): number {
  return before === undefined || now < before ? now : now - before;
}

/** By how much the sums of each row grow with one more report. The parameters are those of `withReport`. */
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

/**
 * A stored table of a node's last heartbeat: listeners, or links. Beside it are the sums of earlier processes, and what has
 * grown in the slot of history that is still open: one write says both, so that an instance that is killed counts nothing
 * twice and forgets nothing. Implements `docs/contract/agent-protocol.md#heartbeats-commands-metrics` and decision 361.
 */
import { createLru } from '../kernel/lru.js';
import type { Collection, Fields } from '../storage/read-store.js';
import type { ClosedSlot } from './history.js';
import { counting, plus } from './history-points.js';
import type { OpenSlot, Point } from './history-points.js';
import type { ReportedTable } from './port.js';
import type { Counters, ProcessTotals, Rows } from './process-totals.js';
import { growthOfRows, noTotals, withReport } from './process-totals.js';
import { rowsIn } from './reported.js';

/** A stored table: a `HeartbeatRequest` of the wire with nothing but that list, and what is added to its counters. */
export type TableFields = {
  readonly wire: Uint8Array;
  readonly process_id: string;
  readonly before: { readonly [row: string]: Counters };
  readonly absent: { readonly [row: string]: Counters };
  readonly gone: Counters;
  /** Missing while no history is kept. */
  readonly open?: OpenSlot;
};

export const totalsOf = ({ process_id, before, absent, gone }: TableFields): ProcessTotals => ({
  processId: process_id,
  before: new Map(Object.entries(before)),
  absent: new Map(Object.entries(absent)),
  gone,
});

/** What was written of a node last. */
interface Written {
  readonly hash: string;
  readonly rows: Rows;
  readonly totals: ProcessTotals;
  readonly open: OpenSlot | undefined;
}

/** One node's report. */
export interface ReportOfTable {
  readonly nodeId: string;
  readonly processId: string;
  readonly table: ReportedTable;
  /** When it came, milliseconds since the epoch. */
  readonly at: number;
}

/** How a table is counted for history. */
export interface TableCounting {
  /** For whom the growth of a row is counted, and what of it. @param key of the row, see `reported.ts` */
  shares(nodeId: string, key: string, growth: Counters): readonly (readonly [resourceId: string, point: Point])[];
  write(closed: readonly ClosedSlot[]): Promise<void>;
}

/**
 * One table per node, written only when it differs from the one that this instance wrote last: tables are large, and come
 * unchanged with most heartbeats. Keeps a hash and the counters of each, never the table.
 */
export function createChangedTables(
  collection: Collection<TableFields>,
  rememberedNodes: number,
  history: TableCounting | undefined,
) {
  const written = createLru<string, Written>({ maxEntries: rememberedNodes });

  const isChanged = ({ nodeId, processId, table, at }: ReportOfTable): boolean => {
    const last = written.get(nodeId);
    if (last?.hash !== table.hash || last.totals.processId !== processId) return true;
    return history !== undefined && last.open !== undefined && counting(last.open, at, new Map()).over !== undefined;
  };

  function grown({ nodeId, processId, table, at }: ReportOfTable, fields: TableFields | undefined) {
    const rows = table.rows();
    const last = written.get(nodeId);
    const before = last?.totals ?? (fields === undefined ? noTotals : totalsOf(fields));
    const lastRows = last?.rows ?? (fields === undefined ? new Map<string, Counters>() : rowsIn(fields.wire));
    const totals = withReport(before, lastRows, processId, rows);
    if (history === undefined) return { rows, totals, open: undefined, over: undefined };
    const more = new Map<string, Point>();
    for (const [key, growth] of growthOfRows(before, lastRows, processId, rows)) {
      for (const [id, point] of history.shares(nodeId, key, growth)) more.set(id, plus(more.get(id), point));
    }
    return { rows, totals, ...counting(last === undefined ? fields?.open : last.open, at, more) };
  }

  return {
    /** @throws ServiceError `unavailable` */
    async write(reports: readonly ReportOfTable[]): Promise<void> {
      const changed = reports.filter(isChanged);
      if (changed.length === 0) return;
      const unknown = changed.flatMap(({ nodeId }) => (written.get(nodeId) === undefined ? [nodeId] : []));
      const stored = await byId(collection, unknown);
      const next = changed.map((report) => ({ ...report, ...grown(report, stored.get(report.nodeId)) }));
      // Before the table that no longer says it.
      await history?.write(next.flatMap(({ nodeId, over }) => (over === undefined ? [] : [{ nodeId, ...over }])));
      await put(
        collection,
        next.map(({ nodeId, table, totals, open }) => {
          const { processId: process_id, gone } = totals;
          const [before, absent] = [Object.fromEntries(totals.before), Object.fromEntries(totals.absent)];
          const fields = { wire: table.bytes, process_id, before, absent, gone };
          return [nodeId, open === undefined ? fields : { ...fields, open }];
        }),
      );
      for (const { nodeId, table, rows, totals, open } of next) {
        written.set(nodeId, { hash: table.hash, rows, totals, open });
      }
    },
    /** The node's next table is written even if it has not changed, behind what is stored. */
    forget: written.delete,
  };
}

export function put<F extends Fields>(
  collection: Collection<F>,
  entries: readonly (readonly [string, F])[],
): Promise<void> {
  return collection.set(entries.map(([id, fields]) => ({ id, fields })));
}

export async function byId<F extends Fields>(
  collection: Collection<F>,
  nodeIds: readonly string[],
): Promise<ReadonlyMap<string, F>> {
  const documents = await collection.getMany(nodeIds);
  return new Map(documents.map(({ id, fields }) => [id, fields]));
}

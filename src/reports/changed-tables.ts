/**
 * A stored table of a node's last heartbeat: listeners, or links, with the sums of earlier processes beside it.
 * Implements `docs/contract/agent-protocol.md#heartbeats-commands-metrics`.
 */
import { createLru } from '../kernel/lru.js';
import type { Collection, Fields } from '../storage/read-store.js';
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
}

/** One node's report. */
export interface ReportOfTable {
  readonly nodeId: string;
  readonly processId: string;
  readonly table: ReportedTable;
  /** When it came, milliseconds since the epoch. */
  readonly at: number;
}

/**
 * Called with what the rows of a report have grown by, once that report is stored.
 * @param recently since the report before it, and not since one of an earlier session
 */
export type OnGrowth = (
  report: ReportOfTable,
  growth: readonly (readonly [key: string, growth: Counters])[],
  recently: boolean,
) => void;

/**
 * One table per node, written only when it differs from the one that this instance wrote last: tables are large, and come
 * unchanged with most heartbeats. Keeps a hash and the counters of each, never the table.
 */
export function createChangedTables(
  collection: Collection<TableFields>,
  rememberedNodes: number,
  onGrowth: OnGrowth | undefined,
) {
  const written = createLru<string, Written>({ maxEntries: rememberedNodes });

  const isChanged = ({ nodeId, processId, table }: ReportOfTable): boolean => {
    const last = written.get(nodeId);
    return last?.hash !== table.hash || last.totals.processId !== processId;
  };

  function grown(report: ReportOfTable, fields: TableFields | undefined) {
    const { nodeId, processId, table } = report;
    const rows = table.rows();
    const last = written.get(nodeId);
    const before = last?.totals ?? (fields === undefined ? noTotals : totalsOf(fields));
    const lastRows = last?.rows ?? (fields === undefined ? new Map<string, Counters>() : rowsIn(fields.wire));
    const totals = withReport(before, lastRows, processId, rows);
    const growth = [...growthOfRows(before, lastRows, processId, rows)];
    return { report, rows, totals, growth, recently: last !== undefined };
  }

  return {
    /** @throws ServiceError `unavailable` */
    async write(reports: readonly ReportOfTable[]): Promise<void> {
      const changed = reports.filter(isChanged);
      if (changed.length === 0) return;
      const unknown = changed.flatMap(({ nodeId }) => (written.get(nodeId) === undefined ? [nodeId] : []));
      const stored = await byId(collection, unknown);
      const next = changed.map((report) => grown(report, stored.get(report.nodeId)));
      await put(
        collection,
        next.map(({ report: { nodeId, table }, totals }) => {
          const { processId: process_id, gone } = totals;
          const [before, absent] = [Object.fromEntries(totals.before), Object.fromEntries(totals.absent)];
          return [nodeId, { wire: table.bytes, process_id, before, absent, gone }];
        }),
      );
      for (const { report, rows, totals, growth, recently } of next) {
        written.set(report.nodeId, { hash: report.table.hash, rows, totals });
        onGrowth?.(report, growth, recently);
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

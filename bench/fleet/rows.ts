/** The rows of the fleet benchmark, and their sizes. */
import type { BenchOptions } from '../options.js';

const rows = ['connect', 'memory', 'one', 'all', 'heartbeats', 'kill'] as const;
export type Row = (typeof rows)[number];

export interface Extent {
  readonly agents: number;
  /** How many of those stay connected when the others have gone, for the row of small fleets. */
  readonly few: number;
  /** Nodes that an edit can touch alone. */
  readonly own: number;
  readonly wanted: ReadonlySet<Row>;
  readonly rounds: { readonly one: number; readonly all: number };
  /** How long the processor time of heartbeats is measured. */
  readonly heartbeatsMs: number;
  readonly heartbeatEveryMs: number;
}

/** @throws Error for a row that does not exist */
export function extentOf({ quick, agents = quick ? 200 : 10_000, only }: BenchOptions): Extent {
  const unknown = only.find((name) => !rows.some((row) => row === name));
  if (unknown !== undefined) throw new Error(`--only: there is no row "${unknown}": expected ${rows.join(', ')}`);
  const few = Math.min(1_000, Math.ceil(agents / 2));
  return {
    agents,
    few,
    own: Math.min(200, few),
    wanted: new Set(rows.filter((row) => only.length === 0 || only.includes(row))),
    rounds: quick ? { one: 20, all: 2 } : { one: 200, all: 5 },
    heartbeatsMs: quick ? 2_000 : 20_000,
    heartbeatEveryMs: quick ? 1_000 : 10_000,
  };
}

/** The table of a full heartbeat: 20 listeners with 5 routes each. */
export const fullTable = { listeners: 20, routesPerListener: 5 } as const;

/** The outcome of a simulation, as data: the JSON that `--json` prints, and the source of the reports. */
import type { HopResult } from './hop-traffic.js';
import type { FleetCounts } from './light/fleet.js';
import type { Scenario } from './scenario.js';

/** Order statistics in milliseconds. */
export interface Times {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

/** One second of the run. */
export interface Second {
  readonly second: number;
  readonly connected: number;
  /** Agents that lack a change they should have. */
  readonly behind: number;
  readonly applies: number;
  readonly rejects: number;
  /** Of the changes that arrived in this second; null if none did. */
  readonly p50: number | null;
  readonly p99: number | null;
  /** CPU cores that the service used; null where unknown. */
  readonly cores: number | null;
}

export interface Storm {
  readonly atSecond: number;
  readonly cut: number;
  /** Until all were connected again; null if they were not by the end. */
  readonly backAfterSeconds: number | null;
}

export interface Result {
  readonly scenario: Omit<Scenario, 'service' | 'json' | 'keep' | 'reportFile'>;
  readonly url: string;
  readonly setUpSeconds: number;
  /** Until all agents were connected; null if they never were. */
  readonly connectSeconds: number | null;
  readonly edits: { readonly one: number; readonly all: number; readonly failed: number };
  /** Until an agent had a change, for agents that read and accept everything. */
  readonly applied: { readonly one: Times | null; readonly all: Times | null };
  /** Until the last agent had a change that touches all nodes. */
  readonly lastApplied: Times | null;
  /** How many changes arrived within this many milliseconds, not counting earlier buckets. */
  readonly histogram: readonly { readonly upToMs: number; readonly count: number }[];
  readonly counts: FleetCounts;
  readonly agents: { readonly rejecting: number; readonly slow: number; readonly cpuSeconds: number };
  readonly serviceCpuSeconds: number | null;
  readonly storms: readonly Storm[];
  /** Results of `--hops`. */
  readonly hops: readonly HopResult[];
  readonly seconds: readonly Second[];
  /** At the end: how many run what they should, according to the service, and some of those that do not. */
  readonly converged: number;
  readonly notConverged: readonly string[];
  /** From the end of the scenario until all had converged; null if they had not. */
  readonly settleSeconds: number | null;
}

/** Whether each chain has carried something and nothing failed. */
export const hopsCarried = ({ hops }: Result): boolean =>
  hops.every(({ served, failed }) => served > 0 && failed === 0);

export const hasConverged = ({ converged, scenario }: Result): boolean => converged === scenario.agents;

/** Nearest-rank quantiles. @returns null without values */
export function timesOf(values: readonly number[]): Times | null {
  if (values.length === 0) return null;
  const sorted = values.toSorted((a, b) => a - b);
  const at = (q: number): number => tenth(sorted[Math.max(0, Math.ceil(q * sorted.length) - 1)] ?? 0);
  return { count: values.length, p50: at(0.5), p99: at(0.99), max: at(1) };
}

export const tenth = (value: number): number => Math.round(value * 10) / 10;

/** Each bucket is twice as wide as the previous one, starting at 1 ms. */
export function histogramOf(values: readonly number[]): Result['histogram'] {
  const counts: number[] = [];
  for (const value of values) {
    const bucket = Math.max(0, Math.ceil(Math.log2(Math.max(value, 1))));
    counts[bucket] = (counts[bucket] ?? 0) + 1;
  }
  return Array.from(counts, (count = 0, bucket) => ({ upToMs: 2 ** bucket, count }));
}

/** Keeps times up to a bound; beyond it, each new one replaces a random one, so that all are equally likely to stay. */
export function createSample(max: number, random: () => number = Math.random) {
  const values: number[] = [];
  let seen = 0;
  return {
    values: values as readonly number[],
    add(value: number): void {
      seen += 1;
      if (values.length < max) {
        values.push(value);
        return;
      }
      const place = Math.floor(random() * seen);
      if (place < max) values[place] = value;
    },
  };
}

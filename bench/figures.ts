/** Turns measurements into the figures of a report: quantiles, spreads, alternating runs, facts about the machine. */
import { cpus, loadavg, totalmem } from 'node:os';

/** Order statistics; the figure's name carries the unit. */
export interface Spread {
  readonly n: number;
  readonly min: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

/** A figure and its floor, measured in the same run. */
export interface Beside {
  readonly service: number;
  readonly floor: number;
  /** service ÷ floor. */
  readonly ratio: number;
  readonly runs: { readonly service: readonly number[]; readonly floor: readonly number[] };
}

export type Figure = number | string | null | readonly number[] | { readonly [name: string]: Figure };

export interface Report {
  readonly bench: string;
  readonly figures: { readonly [name: string]: Figure };
}

/** Four significant digits, already more than a shared machine reproduces. */
export function rounded(value: number): number {
  return Number(value.toPrecision(4));
}

/** The measurement nearest to the quantile `q` (0..1). */
function quantile(values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(q * sorted.length) - 1)] ?? Number.NaN;
}

export const median = (values: readonly number[]): number => quantile(values, 0.5);

export function spread(values: readonly number[]): Spread {
  const at = (q: number): number => rounded(quantile(values, q));
  return { n: values.length, min: at(0), p50: at(0.5), p99: at(0.99), max: at(1) };
}

/** Medians of both, and their ratio. */
export function beside(service: readonly number[], floor: readonly number[]): Beside & { [name: string]: Figure } {
  return {
    service: rounded(median(service)),
    floor: rounded(median(floor)),
    ratio: rounded(median(service) / median(floor)),
    runs: { service: service.map(rounded), floor: floor.map(rounded) },
  };
}

/** Measures both in turn, so that other load on the machine affects both. */
export async function alternately(
  rounds: number,
  service: () => Promise<number>,
  floor: () => Promise<number>,
): Promise<Beside & { [name: string]: Figure }> {
  const measured = { service: [] as number[], floor: [] as number[] };
  for (let round = 0; round < rounds; round += 1) {
    measured.floor.push(await floor());
    measured.service.push(await service());
  }
  return beside(measured.service, measured.floor);
}

/** The machine of the figures: only ratios are comparable with another one. */
export function machine(): Figure {
  const [cpu] = cpus();
  return {
    node: process.version,
    platform: `${process.platform} ${process.arch}`,
    cpu: cpu?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memory_mib: Math.round(totalmem() / 2 ** 20),
    load_before: loadavg().map((load) => Math.round(load * 100) / 100),
  };
}

/** Milliseconds on a clock that all processes of this machine share. */
export function sharedClock(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

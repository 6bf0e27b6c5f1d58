/** The command line of the benchmarks. */
import { parseArgs } from 'node:util';

export interface BenchOptions {
  /** Fewer and shorter rounds, to check that a benchmark works. */
  readonly quick: boolean;
  /** Events of the replayed log. */
  readonly events: number;
  /** Connected agents in the largest fleet; undefined: as many as the benchmark's figures are usually for. */
  readonly agents: number | undefined;
  /** Rows of the benchmark to measure; empty: all. */
  readonly only: readonly string[];
}

/** The options and the names of the benchmarks to run. @throws Error for an unknown option or a number out of range */
export function readOptions(args: readonly string[]): {
  readonly options: BenchOptions;
  readonly names: readonly string[];
} {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      quick: { type: 'boolean', default: false },
      events: { type: 'string' },
      agents: { type: 'string' },
      only: { type: 'string', multiple: true, default: [] },
    },
  });
  const count = (name: string, text: string, min: number, max: number): number => {
    const value = Number(text);
    if (!Number.isInteger(value) || value < min || value > max) {
      throw new Error(`--${name}: expected a whole number from ${min} to ${max}`);
    }
    return value;
  };
  const { quick } = values;
  return {
    names: positionals,
    options: {
      quick,
      events: count('events', values.events ?? (quick ? '50000' : '1000000'), 1_000, 10_000_000),
      agents: values.agents === undefined ? undefined : count('agents', values.agents, 1, 20_000),
      only: values.only,
    },
  };
}

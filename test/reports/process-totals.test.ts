/** The sums over an agent's processes never fall, and miss nothing that was reported. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  absentSums,
  growthOf,
  noTotals,
  sumOf,
  withReport,
  type Counters,
  type Rows,
} from '../../src/reports/process-totals.js';

type Step =
  | { readonly kind: 'count'; readonly row: number; readonly by: number }
  | { readonly kind: 'report'; readonly without: number }
  | { readonly kind: 'restart' }
  /** A row of the same process begins again. */
  | { readonly kind: 'reopen'; readonly row: number };

const row = fc.nat(3);
const steps = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant('count' as const), row, by: fc.nat(5) }),
    fc.record({ kind: fc.constant('report' as const), without: fc.nat(5) }),
    fc.record({ kind: fc.constant('restart' as const) }),
    fc.record({ kind: fc.constant('reopen' as const), row }),
  ),
  { maxLength: 60 },
);

it('whatever is restarted, closed and opened again between reports, of processes that name themselves', () => {
  fc.assert(
    fc.property(steps, (sequence: readonly Step[]) => {
      let [totals, last]: [typeof noTotals, Rows] = [noTotals, new Map()];
      let process = 0;
      let counted = new Map<number, number>();
      /** What was counted and reported before it was lost with its process or row. */
      let [reported, shown] = [0, 0];
      const known = new Map<number, number>();
      for (const step of sequence) {
        if (step.kind === 'count') counted.set(step.row, (counted.get(step.row) ?? 0) + step.by);
        if (step.kind === 'restart') {
          [process, counted] = [process + 1, new Map()];
          known.clear();
        }
        if (step.kind === 'reopen') {
          counted.delete(step.row);
        }
        if (step.kind !== 'report') continue;
        const rows = new Map<string, Counters>(
          [...counted].filter(([at]) => at !== step.without).map(([at, bytes]) => [`${at}`, { bytes }]),
        );
        for (const [at, { bytes = 0 }] of rows) {
          reported += growthOf(known.get(Number(at)), bytes);
          known.set(Number(at), bytes);
        }
        totals = withReport(totals, last, `process ${process}`, rows);
        last = rows;
        const sum = [...rows].reduce(
          (all, [key, counters]) => sumOf(all, sumOf(counters, totals.before.get(key) ?? {})),
          absentSums(totals),
        );
        expect(sum['bytes'] ?? 0).toBe(reported);
        expect(sum['bytes'] ?? 0).toBeGreaterThanOrEqual(shown);
        shown = sum['bytes'] ?? 0;
      }
    }),
    { numRuns: 300 },
  );
});

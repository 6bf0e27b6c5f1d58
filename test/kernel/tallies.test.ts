/** Counts and histograms, and how `/metrics` shows them. */
import { expect, test } from 'vitest';
import { systemClock } from '../../src/kernel/clock.js';
import { createHistogram, createTally } from '../../src/kernel/tallies.js';
import { createMetrics } from '../../src/operations/metrics.js';
import { createManualClock } from '../support/manual-clock.js';

test('a histogram is shown with cumulative buckets, sum and count, and label values are escaped', async () => {
  const histogram = createHistogram([0.1, 1]);
  for (const value of [0.05, 0.1, 0.5, 7]) histogram.observe(['a "quoted"\nword'], value);
  const tally = createTally();
  tally.add(['x', 'y']);
  tally.add(['x', 'y'], 4);
  const metrics = createMetrics(
    [
      { type: 'histogram', name: 'svc_h_seconds', help: 'Some times.', labels: ['of'], histogram },
      { type: 'tally', name: 'svc_t_total', help: 'Some counts.', labels: ['a', 'b'], tally },
      { type: 'gauge', name: 'svc_g', help: 'A number.', read: () => 3 },
      { type: 'counter', name: 'svc_c_total', help: 'By one word.', label: 'w', read: () => new Map([['one', 1]]) },
    ],
    systemClock,
  );
  const text = await metrics.text();
  metrics.close();
  expect(text.split('\n').slice(0, 16)).toEqual([
    '# HELP svc_h_seconds Some times.',
    '# TYPE svc_h_seconds histogram',
    'svc_h_seconds_bucket{of="a \\"quoted\\"\\nword",le="0.1"} 2',
    'svc_h_seconds_bucket{of="a \\"quoted\\"\\nword",le="1"} 3',
    'svc_h_seconds_bucket{of="a \\"quoted\\"\\nword",le="+Inf"} 4',
    'svc_h_seconds_sum{of="a \\"quoted\\"\\nword"} 7.65',
    'svc_h_seconds_count{of="a \\"quoted\\"\\nword"} 4',
    '# HELP svc_t_total Some counts.',
    '# TYPE svc_t_total counter',
    'svc_t_total{a="x",b="y"} 5',
    '# HELP svc_g A number.',
    '# TYPE svc_g gauge',
    'svc_g 3',
    '# HELP svc_c_total By one word.',
    '# TYPE svc_c_total counter',
    'svc_c_total{w="one"} 1',
  ]);
  expect(text).toContain('# TYPE nodejs_eventloop_lag_p99_seconds gauge');
  // Of ten thousand agents each would be listed.
  expect(text).not.toContain('nodejs_active_');
});

test('words that turn out to be many are counted under other, and nothing is lost', () => {
  const tally = createTally();
  for (let i = 0; i < 10_000; i += 1) tally.add([`word ${i}`, 'x']);
  const all = [...tally.all()];
  expect(all.length).toBeLessThanOrEqual(4_097);
  expect(all.reduce((sum, { value }) => sum + value, 0)).toBe(10_000);
  expect(all.at(-1)).toEqual({ words: ['other', 'other'], value: 10_000 - 4_096 });
});

test('what is no number is counted above all bounds and leaves the sum alone', () => {
  const histogram = createHistogram([1]);
  histogram.observe([], Number.NaN);
  histogram.observe([], 0.5);
  expect([...histogram.all()]).toEqual([{ words: [], value: { counts: [1, 1], sum: 0.5 } }]);
});

test('the text is made once a second at most, however many ask for it', async () => {
  const clock = createManualClock();
  let read = 0;
  const metrics = createMetrics([{ type: 'gauge', name: 'svc_g', help: 'A number.', read: () => (read += 1) }], clock);
  const texts = await Promise.all([metrics.text(), metrics.text()]);
  clock.advance(999);
  texts.push(await metrics.text());
  expect([new Set(texts).size, read]).toEqual([1, 1]);
  clock.advance(1);
  expect(await metrics.text()).toContain('svc_g 2\n');
  metrics.close();
});

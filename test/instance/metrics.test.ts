/** How `/metrics` shows counts, histograms and numbers that are read. */
import { Counter, Histogram } from 'prom-client';
import { expect, test } from 'vitest';
import { createMetrics } from '../../src/instance/metrics.js';
import { createManualClock } from '../support/manual-clock.js';

test('metrics of the parts and numbers that are read are shown together, label values escaped', async () => {
  const histogram = new Histogram({
    name: 'svc_h_seconds',
    help: 'Some times.',
    labelNames: ['of'],
    buckets: [0.1, 1],
    registers: [],
  });
  for (const value of [0.05, 0.1, 0.5, 7]) histogram.observe({ of: 'a "quoted"\nword' }, value);
  const counter = new Counter({ name: 'svc_t_total', help: 'Some counts.', labelNames: ['a', 'b'], registers: [] });
  counter.inc({ a: 'x', b: 'y' });
  counter.inc({ a: 'x', b: 'y' }, 4);
  let words = new Map([['one', 1]]);
  const clock = createManualClock();
  const metrics = createMetrics(
    [
      histogram,
      counter,
      { type: 'gauge', name: 'svc_g', help: 'A number.', read: () => 3 },
      { type: 'counter', name: 'svc_c_total', help: 'By one word.', label: 'w', read: () => words },
    ],
    clock,
  );
  const text = await metrics.text();
  const own = (all: string) => all.split('\n').filter((line) => /^(# \w+ )?svc_/.test(line));
  expect(own(text)).toEqual([
    '# HELP svc_h_seconds Some times.',
    '# TYPE svc_h_seconds histogram',
    'svc_h_seconds_bucket{le="0.1",of="a \\"quoted\\"\\nword"} 2',
    'svc_h_seconds_bucket{le="1",of="a \\"quoted\\"\\nword"} 3',
    'svc_h_seconds_bucket{le="+Inf",of="a \\"quoted\\"\\nword"} 4',
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
  // Otherwise each of ten thousand agents would be listed.
  expect(text).not.toContain('nodejs_active_');
  // A number that is read is shown as it is then, and a word that is gone is shown no more.
  words = new Map([['two', 2]]);
  clock.advance(1_000);
  expect(own(await metrics.text()).slice(-1)).toEqual(['svc_c_total{w="two"} 2']);
  metrics.close();
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

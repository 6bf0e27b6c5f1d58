/** How far the read models are behind what this instance knows of the log. `docs/how-to/monitor.md`. */
import { afterEach, expect, test } from 'vitest';
import { watchProjectionLag } from '../../src/instance/projection-lag.js';
import { createManualClock } from '../support/manual-clock.js';

const clock = createManualClock();
let [newest, held] = [0, 0];
const lag = watchProjectionLag({ newest: () => newest, held: () => held, clock, everyMs: 3_600_000 });
afterEach(() => lag.close());

/** Looks at both numbers, as a scrape does. */
const shown = (): readonly unknown[] => lag.metrics().map((source) => ('read' in source ? source.read() : undefined));

test('the seconds are the age of the oldest event that is missing, and fall when it is held', () => {
  expect(shown()).toEqual([0, 0]);
  newest = 10;
  expect(shown()).toEqual([10, 0]);
  clock.advance(3_000);
  newest = 25;
  expect(shown()).toEqual([25, 3]);
  clock.advance(2_000);
  held = 9;
  expect(shown()).toEqual([16, 5]);
  held = 10;
  expect(shown()).toEqual([15, 2]);
  held = 25;
  expect(shown()).toEqual([0, 0]);
  // The read models may hear of an event of another instance first.
  held = 40;
  expect(shown()).toEqual([0, 0]);
  newest = 41;
  for (let look = 0; look < 5_000; look += 1) {
    clock.advance(1_000);
    newest += 1;
    shown();
  }
  expect(shown()[1]).toBeGreaterThanOrEqual(4_999);
});

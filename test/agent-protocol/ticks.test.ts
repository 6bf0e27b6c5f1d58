/** The time limits of many sessions are checked in parts. */
import { expect, test } from 'vitest';
import { createTicks } from '../../src/transport/agent/ticks.js';
import { tuning } from '../../src/transport/agent/tuning.js';
import { turns } from '../support/delivery-fixture.js';
import { createManualClock } from '../support/manual-clock.js';

/** Sessions that note when they are checked. */
function sessions(count: number) {
  const checked: number[] = [];
  const all = new Set(Array.from({ length: count }, (_, number) => ({ tick: () => void checked.push(number) })));
  return { checked, all };
}

test('a small fleet is checked whole at each sweep', async () => {
  const { checked, all } = sessions(tuning.sweepPart + 1);
  const ticks = createTicks(() => all, createManualClock());
  for (let sweep = 1; sweep <= 3; sweep += 1) {
    ticks.next();
    await turns(5);
    expect(checked.length).toBe(sweep * all.size);
  }
  ticks.close();
});

test('a large fleet is checked in parts, each session once in a round, also when sessions come and go', async () => {
  const perSweep = tuning.sweepPart * tuning.sweepParts;
  const { checked, all } = sessions(2 * perSweep + 10);
  const ticks = createTicks(() => all, createManualClock());
  ticks.next();
  expect(checked.length).toBe(tuning.sweepPart);
  await turns(tuning.sweepParts + 2);
  expect(checked.length).toBe(perSweep);
  const [gone] = all;
  if (gone !== undefined) all.delete(gone);
  for (let sweep = 0; sweep < 2; sweep += 1) {
    ticks.next();
    await turns(tuning.sweepParts + 2);
  }
  expect(checked).toEqual(Array.from({ length: 2 * perSweep + 10 }, (_, number) => number));
  ticks.next();
  ticks.close();
  await turns(tuning.sweepParts + 2);
  expect(checked.length).toBe(2 * perSweep + 10 + tuning.sweepPart);
});

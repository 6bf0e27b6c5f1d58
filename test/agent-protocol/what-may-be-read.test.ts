/** What may be read of a node: its budget. */
import { describe, expect, test } from 'vitest';
import { createReadBudgets } from '../../src/transport/agent/read-budget.js';
import { createManualClock } from '../support/manual-clock.js';

describe('what may be read of a node', () => {
  const rate = (perSecond: number, burst: number) => ({ perSecond, burst });
  const budgets = (allowed = { payloads: rate(2, 3), entries: rate(10, 20), bytes: rate(100, 200) }) => {
    const clock = createManualClock();
    return { clock, budgets: createReadBudgets(clock, allowed) };
  };

  test('is a burst of payloads and then a rate, for the node and not for the session', () => {
    const { clock, budgets: made } = budgets();
    for (let count = 0; count < 3; count += 1) made('n1').payload(0);
    expect(made('n1').spent).toBe(false);
    made('n1').payload(0);
    expect([made('n1').spent, made('n2').spent]).toEqual([true, false]);
    clock.advance(498);
    expect(made('n1').spent).toBe(true);
    clock.advance(4);
    expect(made('n1').spent).toBe(false);
  });

  test('is a debt until what was too much is paid: entries and bytes alike', () => {
    const { clock, budgets: made } = budgets();
    made('n1').payload(30);
    expect(made('n1').spent).toBe(true);
    clock.advance(998);
    expect(made('n1').spent).toBe(true);
    clock.advance(4);
    expect(made('n1').spent).toBe(false);
    made('n2').frame(200);
    expect(made('n2').spent).toBe(false);
    made('n2').frame(50);
    expect(made('n2').spent).toBe(true);
    clock.advance(502);
    expect(made('n2').spent).toBe(false);
  });
});

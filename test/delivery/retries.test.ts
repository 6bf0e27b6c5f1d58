/** When a rejected newest generation becomes the target again: the schedule, its jitter, and how many nodes a second. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { ApplyHistoryRecord } from '../../src/delivery/apply-history.js';
import { createRetries, tryAgain } from '../../src/delivery/retries.js';
import { emptyApplyHistory } from '../../src/delivery/target.js';
import { createManualClock, type ManualClock } from '../support/manual-clock.js';

const minute = 60_000;
let clock: ManualClock;
let records: Map<string, ApplyHistoryRecord>;
let offered: string[];
let generation: number | undefined;
let random: number;

beforeEach(() => {
  [clock, records, offered, generation, random] = [createManualClock(), new Map(), [], 9, 0.5];
});

const create = () =>
  createRetries({
    histories: { peek: (nodeId) => records.get(nodeId) },
    clock,
    random: () => random,
    generation: () => generation,
    offer: (nodeId) => void offered.push(nodeId),
  });
/** A node with a session here that rejected generation 9. */
function rejecting(nodeId = 'n1'): ApplyHistoryRecord {
  const rejected = [{ generation: 9, checksum: 'aa', sessionId: 's1', errors: '' }];
  const history = { ...emptyApplyHistory, rejected };
  const record: ApplyHistoryRecord = { nodeId, history, recorded: true, reportedAt: 0, retry: undefined };
  records.set(nodeId, record);
  return record;
}

describe('the schedule of a rejected generation', () => {
  it.each([
    [0, [0.8, 4, 24, 72]],
    [0.5, [1, 5, 30, 90]],
    [1, [1.2, 6, 36, 108]],
  ])('has a jitter of a fifth: random %s', (value, minutes) => {
    random = value;
    const { rejected, tick } = create();
    const record = rejecting();
    rejected(record, 9, 's1');
    for (const [index, due] of minutes.entries()) {
      clock.advance(Math.round(due * minute) - 1 - clock.monotonic());
      tick();
      expect(offered).toHaveLength(index);
      clock.advance(1);
      tick();
      expect(offered).toHaveLength(index + 1);
    }
  });

  it('counts from the first reject, whatever is rejected in between', () => {
    const { rejected, tick } = create();
    const record = rejecting();
    rejected(record, 9, 's1');
    clock.advance(minute - 1);
    rejected(record, 9, 's1');
    clock.advance(1);
    tick();
    expect(offered).toEqual(['n1']);
  });

  it('begins anew with a newer generation, and ends when it is applied', () => {
    const { rejected, asked, tick } = create();
    const record = rejecting();
    rejected(record, 9, 's1');
    generation = 10;
    clock.advance(minute);
    tick();
    expect([offered, tryAgain(record)]).toEqual([[], undefined]);
    record.history = { ...record.history, rejected: [{ ...record.history.rejected[0]!, generation: 10 }] };
    rejected(record, 10, 's1');
    clock.advance(minute);
    asked(record);
    expect(tryAgain(record)).toBe(10);
    record.history = emptyApplyHistory;
    clock.advance(5 * minute);
    tick();
    expect([offered, record.retry]).toEqual([[], undefined]);
  });

  it('takes several times that passed while the node was away for one', () => {
    const { rejected, asked, tick } = create();
    const record = rejecting();
    rejected(record, 9, 's1');
    clock.advance(7 * minute);
    asked(record);
    expect(record.retry).toMatchObject({ isTarget: true, times: 2, dueAt: 30 * minute });
    tick();
    expect(offered).toEqual([]);
  });

  it('stays when the node has no session here: nothing is offered, and its next request is due', () => {
    const { rejected, asked, tick } = create();
    const record = rejecting();
    rejected(record, 9, 's1');
    records.clear();
    clock.advance(minute);
    tick();
    records.set('n1', record);
    tick();
    expect([offered, tryAgain(record)]).toEqual([[], undefined]);
    asked(record);
    expect(tryAgain(record)).toBe(9);
  });
});

describe('a generation that is to be tried again', () => {
  it('is the target until the session that was offered it rejects it: another one repeats what was said before', () => {
    const { rejected, reload } = create();
    const record = rejecting();
    reload(record);
    rejected(record, 9, 's1');
    expect(tryAgain(record)).toBe(9);
    record.retry!.offeredTo = 's2';
    rejected(record, 8, 's2');
    rejected(record, 9, 's1');
    expect(tryAgain(record)).toBe(9);
    rejected(record, 9, 's2');
    expect(tryAgain(record)).toBeUndefined();
  });

  it('is none that was not rejected', () => {
    const { reload, asked } = create();
    const record = rejecting();
    record.history = emptyApplyHistory;
    reload(record);
    asked(record);
    expect(record.retry).toBeUndefined();
  });
});

it('of many nodes that are due, fifty a second are offered theirs, the first ones first', () => {
  const { rejected, tick } = create();
  const names = Array.from({ length: 120 }, (_, index) => `n${index}`);
  for (const name of names) rejected(rejecting(name), 9, 's1');
  clock.advance(minute);
  const counts = [];
  for (let second = 0; second < 4; second += 1) {
    tick();
    counts.push(offered.length);
  }
  expect(counts).toEqual([50, 100, 120, 120]);
  expect(offered).toEqual(names);
});

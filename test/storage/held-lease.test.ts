/** A lease judged by the holder's own clock (`docs/contract/domain.md#commands-and-events`). */
import { expect, test } from 'vitest';
import { createHeldLease } from '../../src/storage/held-lease.js';
import { createManualClock } from '../support/manual-clock.js';

test('a lease that ended while its renewal was asked for is taken anew, with whatever happened meanwhile', async () => {
  const clock = createManualClock();
  const taken: boolean[] = [];
  let answerMs = 0;
  const lease = createHeldLease({
    leases: {
      async acquire() {
        clock.advance(answerMs);
        return true;
      },
      async release() {},
    },
    kind: 'kind',
    name: 'name',
    holder: 'instance',
    ttlMs: 10_000,
    everyMs: 3_000,
    clock,
    onGiven: (isTaken) => void taken.push(isTaken),
  });
  await lease.hold();
  clock.advance(3_000);
  await lease.hold();
  clock.advance(3_000);
  answerMs = 8_000;
  expect(await lease.hold()).toBe(true);
  expect(lease.isHeld()).toBe(true);
  clock.advance(3_000);
  answerMs = 10_000;
  // The answer came when another instance may have taken it.
  expect(await lease.hold()).toBe(false);
  expect(taken).toEqual([true, false, true, true]);
});

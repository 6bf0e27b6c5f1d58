/** An instance that shares the log, but not the read store, is told apart from one that has just ended. */
import { expect, test } from 'vitest';
import { watchSharing, sentenceAbout } from '../../src/instance/sharing.js';
import { timestamp } from '../../src/kernel/clock.js';
import { createManualClock } from '../support/manual-clock.js';

function world() {
  const clock = createManualClock();
  const sharing = watchSharing('own', clock);
  return {
    clock,
    sharing,
    /** The leases were read just before. */
    wrote(id: string, { live = ['own'], agoMs = 0 } = {}): void {
      sharing.check(live);
      sharing.wrote(id, timestamp(clock.now() - agoMs));
    },
  };
}

test('one that goes on writing without a lease is told once, until it holds one', () => {
  const { clock, sharing, wrote } = world();
  wrote('other');
  expect(sharing.check(['own'])).toEqual([]);
  clock.advance(20_000);
  wrote('other');
  expect(sharing.problems()).toEqual([]);
  expect(sharing.check(['own'])).toEqual(['other']);
  expect(sharing.check(['own'])).toEqual([]);
  expect(sharing.problems()).toEqual([sentenceAbout('other')]);
  expect(sharing.check(['own', 'other'])).toEqual([]);
  expect(sharing.problems()).toEqual([]);
});

test('one that has written nothing for an hour is no longer told', () => {
  const { clock, sharing, wrote } = world();
  wrote('other');
  clock.advance(20_000);
  wrote('other');
  sharing.check([]);
  clock.advance(3_600_001);
  sharing.check([]);
  expect(sharing.problems()).toEqual([]);
});

test.each([
  [
    'ended after it had written',
    ({ clock, wrote }: ReturnType<typeof world>) => (wrote('other'), clock.advance(60_000)),
  ],
  [
    'held a lease between two times',
    ({ clock, wrote }: ReturnType<typeof world>) => {
      wrote('other');
      clock.advance(60_000);
      wrote('other', { live: ['own', 'other'] });
    },
  ],
  [
    'wrote what is read while catching up',
    ({ clock, wrote }: ReturnType<typeof world>) => {
      wrote('other', { agoMs: 60_000 });
      clock.advance(30_000);
      wrote('other', { agoMs: 30_000 });
    },
  ],
  [
    'wrote while the leases could not be read',
    ({ clock, sharing, wrote }: ReturnType<typeof world>) => {
      wrote('other');
      clock.advance(60_000);
      sharing.wrote('other', timestamp(clock.now()));
    },
  ],
  [
    'is this one',
    ({ clock, wrote }: ReturnType<typeof world>) => {
      wrote('own');
      clock.advance(30_000);
      wrote('own');
    },
  ],
])('one that %s is not told', (_, happens) => {
  const here = world();
  happens(here);
  expect(here.sharing.check([])).toEqual([]);
});

import { expect, test } from 'vitest';
import { createShared } from '../../src/kernel/shared.js';

/** A shared value that the test makes by hand. */
function made() {
  const makers: { resolve(value: string): void; reject(error: Error): void }[] = [];
  const state = { stamp: 0, now: 0 };
  const ask = createShared(() => new Promise<string>((resolve, reject) => makers.push({ resolve, reject })), {
    stamp: () => state.stamp,
    isFresh: ({ stamp, begunAt }) => stamp === state.stamp && state.now - begunAt < 10,
    now: () => state.now,
  });
  return { ask, makers, state };
}
const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
};

test('all who ask at a time get one value, and it is given again while it is fresh', async () => {
  const { ask, makers, state } = made();
  const both = Promise.all([ask(), ask()]);
  makers[0]?.resolve('one');
  expect(await both).toEqual(['one', 'one']);
  state.now = 9;
  expect(await ask()).toBe('one');
  state.now = 10;
  const later = ask();
  makers[1]?.resolve('two');
  expect(await later).toBe('two');
  expect(makers).toHaveLength(2);
});

test('who asks after a change does not get what was begun before it, and one value at a time is made', async () => {
  const { ask, makers, state } = made();
  const first = ask();
  state.stamp = 1;
  const late = [ask(), ask()];
  await turns();
  expect(makers).toHaveLength(1);
  makers[0]?.resolve('before');
  expect(await first).toBe('before');
  await turns();
  expect(makers).toHaveLength(2);
  makers[1]?.resolve('after');
  expect(await Promise.all(late)).toEqual(['after', 'after']);
});

test('a failure is told to those who wait for it, and the next call tries again', async () => {
  const { ask, makers, state } = made();
  const first = ask();
  state.stamp = 1;
  const late = ask();
  makers[0]?.reject(new Error('away'));
  await expect(first).rejects.toThrow('away');
  await turns();
  makers[1]?.resolve('back');
  expect(await late).toBe('back');
  expect(await ask()).toBe('back');
});

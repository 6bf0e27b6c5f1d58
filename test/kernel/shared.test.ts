import { expect, test } from 'vitest';
import { createShared } from '../../src/kernel/shared.js';

/** A shared value that the test makes by hand. */
function made() {
  const makers: { resolve(value: string): void; reject(error: Error): void }[] = [];
  const ask = createShared(() => new Promise<string>((resolve, reject) => makers.push({ resolve, reject })));
  return { ask, makers };
}
const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
};

test('who asks while one is being made gets the next one, with all others who ask so late', async () => {
  const { ask, makers } = made();
  const first = ask();
  const late = [ask(), ask()];
  await turns();
  expect(makers).toHaveLength(1);
  makers[0]?.resolve('before');
  expect(await first).toBe('before');
  await turns();
  expect(makers).toHaveLength(2);
  const latest = ask();
  makers[1]?.resolve('after');
  expect(await Promise.all(late)).toEqual(['after', 'after']);
  await turns();
  makers[2]?.resolve('last');
  expect(await latest).toBe('last');
});

test('a value is made anew for who asks after it was made', async () => {
  const { ask, makers } = made();
  const first = ask();
  makers[0]?.resolve('one');
  expect(await first).toBe('one');
  const second = ask();
  makers[1]?.resolve('two');
  expect(await second).toBe('two');
});

test('a failure is told to those who wait for it, and the next call tries again', async () => {
  const { ask, makers } = made();
  const first = ask();
  const late = ask();
  makers[0]?.reject(new Error('away'));
  await expect(first).rejects.toThrow('away');
  await turns();
  makers[1]?.resolve('back');
  expect(await late).toBe('back');
});

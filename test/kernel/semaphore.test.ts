/** Places that owners share fairly (`docs/contract/automation.md#the-fleet-as-a-file`, limits). */
import { expect, test } from 'vitest';
import { createSemaphore } from '../../src/kernel/semaphore.js';

function ask(semaphore: ReturnType<typeof createSemaphore>, served: string[]) {
  return async (owner: string): Promise<void> => {
    const leave = await semaphore.enter(owner);
    served.push(leave === undefined ? `${owner} refused` : owner);
    leave?.();
  };
}

test('a place goes to another owner first, and a full queue gives up a place of who has most of it', async () => {
  const semaphore = createSemaphore({ places: 1, waiting: 4, waitMs: 60_000 });
  const served: string[] = [];
  const one = ask(semaphore, served);
  const first = await semaphore.enter('flood');
  const flood = Array.from({ length: 5 }, () => one('flood'));
  await flood[4];
  expect(served).toEqual(['flood refused']);
  const others = [one('a'), one('b')];
  await Promise.all([flood[3], flood[2]]);
  expect(served).toEqual(['flood refused', 'flood refused', 'flood refused']);
  first?.();
  await Promise.all([...flood, ...others]);
  expect(served.slice(3)).toEqual(['a', 'flood', 'b', 'flood']);
  expect(semaphore.taken).toBe(0);
});

test('nobody makes room for an owner who would have as much as the others', async () => {
  const semaphore = createSemaphore({ places: 1, waiting: 2, waitMs: 60_000 });
  const served: string[] = [];
  const one = ask(semaphore, served);
  const first = await semaphore.enter('a');
  const waiting = [one('a'), one('b')];
  await one('c');
  expect(served).toEqual(['c refused']);
  first?.();
  await Promise.all(waiting);
  expect(served).toEqual(['c refused', 'b', 'a']);
});

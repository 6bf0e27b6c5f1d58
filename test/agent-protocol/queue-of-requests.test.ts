/** The queue of a session: requests are handled one at a time, in order, and none holds up the others for long. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { SerialQueue } from '../../src/transport/agent/serial-queue.js';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('the queue of requests', () => {
  function queue() {
    const failures: unknown[] = [];
    const done: string[] = [];
    let progress = 0;
    const finish: (() => void)[] = [];
    const made = new SerialQueue({
      onFailed: (error) => void failures.push(error),
      onProgress: () => void (progress += 1),
    });
    const add = (name: string): void =>
      made.run(async () => {
        await new Promise<void>((resolve) => finish.push(resolve));
        done.push(name);
      });
    return { made, add, done, failures, progress: () => progress, finish: () => finish.shift()?.() };
  }

  test('runs them one at a time, in order', async () => {
    const { made, add, done, finish, progress } = queue();
    for (const name of ['a', 'b', 'c']) add(name);
    expect(made.size).toBe(3);
    finish();
    await turn();
    expect([done, made.size, progress()]).toEqual([['a'], 2, 1]);
    finish();
    await turn();
    finish();
    await turn();
    expect([done, made.size, progress()]).toEqual([['a', 'b', 'c'], 0, 3]);
    add('d');
    finish();
    await turn();
    expect([done.at(-1), made.size]).toEqual(['d', 0]);
  });

  test('goes on after one that fails or takes too long, and tells both', async () => {
    const { made, add, done, failures, finish, progress } = queue();
    made.run(() => Promise.reject(new Error('bad')));
    made.run(() => new Promise(() => undefined));
    add('next');
    await turn();
    expect([failures, made.size]).toEqual([[new Error('bad')], 2]);
    await vi.advanceTimersByTimeAsync(30_000);
    expect(failures).toEqual([new Error('bad'), new Error('no answer in time')]);
    finish();
    await turn();
    expect([done, progress()]).toEqual([['next'], 3]);
  });

  test('goes on without a task that may be passed, and tells if that one has failed before', async () => {
    const { made, add, done, failures, finish } = queue();
    made.run(() => new Promise(() => undefined), 2_000);
    add('next');
    await vi.advanceTimersByTimeAsync(1_999);
    expect(made.size).toBe(2);
    await vi.advanceTimersByTimeAsync(1);
    finish();
    await turn();
    expect([done, failures, made.size]).toEqual([['next'], [], 0]);
    made.run(() => Promise.reject(new Error('bad')), 2_000);
    await turn();
    expect(failures).toEqual([new Error('bad')]);
  });

  test('drops what waits when it is closed, and lets the running one finish', async () => {
    const { made, add, done, finish } = queue();
    add('a');
    add('b');
    made.close();
    expect(made.size).toBe(1);
    finish();
    await turn();
    expect([done, made.size]).toEqual([['a'], 0]);
  });
});

/** The tools for waiting: places, conditions and pauses between tries. */
import { describe, expect, it } from 'vitest';
import { sleep, unlessAborted, withFirstOf, yieldToEventLoop } from '../../src/kernel/background.js';
import { attachedTo } from '../support/attached.js';
import { backoff } from '../../src/kernel/retry.js';
import { createSemaphore } from '../../src/kernel/semaphore.js';
import { createWaiters } from '../../src/kernel/waiters.js';

function ask(semaphore: ReturnType<typeof createSemaphore>, served: string[]) {
  return async (owner: string): Promise<void> => {
    const leave = await semaphore.enter(owner);
    served.push(leave === undefined ? `${owner} refused` : owner);
    leave?.();
  };
}

const never = new Promise<never>(() => undefined);

describe('the first of several signals', () => {
  it('ends what is done with it, for its reason', async () => {
    const [one, other] = [new AbortController(), new AbortController()];
    const done = withFirstOf([one.signal, other.signal], (signal) => unlessAborted(never, signal));
    other.abort('closing');
    one.abort('late');
    await expect(done).rejects.toBe('closing');
    const inVain = withFirstOf([one.signal], (signal) => unlessAborted(never, signal));
    await expect(inVain).rejects.toBe('late');
  });

  it('leaves nothing at signals that live on', async () => {
    const closing = new AbortController();
    const given = await withFirstOf([closing.signal], async (signal) => signal);
    expect(given.aborted).toBe(true);
    expect(attachedTo(closing.signal)).toEqual([]);
  });
});

it('lets any number wait for one signal, without a warning of a leak', async () => {
  const warnings: string[] = [];
  const warned = (warning: Error): number => warnings.push(warning.message);
  process.on('warning', warned);
  const waits: readonly ((signal: AbortSignal) => Promise<unknown>)[] = [
    (signal) => sleep(60_000, signal),
    (signal) => unlessAborted(never, signal),
    (signal) => withFirstOf([signal], (first) => unlessAborted(never, first)),
  ];
  for (const wait of waits) {
    const stop = new AbortController();
    const all = Array.from({ length: 20 }, () => wait(stop.signal));
    stop.abort();
    await Promise.allSettled(all);
  }
  await yieldToEventLoop();
  process.off('warning', warned);
  expect(warnings).toEqual([]);
});

it('sleeps for longer than a timer of Node can, such as the rekey interval of a year that a service may grant', async () => {
  const stop = new AbortController();
  const woken: string[] = [];
  const year = sleep(366 * 86_400_000, stop.signal).then(() => woken.push('after a year'));
  await sleep(10);
  woken.push('after 10 ms');
  stop.abort();
  await year;
  expect(woken).toEqual(['after 10 ms', 'after a year']);
});

describe('a semaphore', () => {
  it('hands a place over to the caller that has waited longest', async () => {
    const semaphore = createSemaphore({ places: 1, waitMs: 10_000 });
    const leave = await semaphore.enter();
    const order: string[] = [];
    const waiting = ['first', 'second'].map(async (name) => {
      const next = await semaphore.enter();
      order.push(name);
      next?.();
    });
    leave?.();
    // A second call gives nothing back.
    leave?.();
    await Promise.all(waiting);
    expect(order).toEqual(['first', 'second']);
    expect(semaphore.taken).toBe(0);
  });

  it('refuses callers when the queue is full, after the wait, and once closed', async () => {
    const semaphore = createSemaphore({ places: 1, waiting: 1, waitMs: 20 });
    await semaphore.enter();
    const waiting = semaphore.enter();
    expect(await semaphore.enter()).toBeUndefined();
    expect(await waiting).toBeUndefined();
    const closedOut = semaphore.enter();
    semaphore.close();
    expect(await closedOut).toBeUndefined();
    expect(await semaphore.enter()).toBeUndefined();
  });

  it('gives a place to another owner first, and a full queue gives up one of the owner with most of it', async () => {
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

  it('makes no room for an owner who would have as much as the others', async () => {
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
});

describe('waiters', () => {
  it('resolve when their condition holds, and only then', async () => {
    const waiters = createWaiters();
    let value = 0;
    const one = waiters.until(() => value >= 1, 10_000);
    const two = waiters.until(() => value >= 2, 20);
    value = 1;
    waiters.look();
    expect(await one).toBe(true);
    expect(await two).toBe(false);
    expect(await waiters.until(() => value >= 1, 0)).toBe(true);
  });

  it('answer false above their bound and once closed', async () => {
    const waiters = createWaiters(1);
    const waiting = waiters.until(() => false, 10_000);
    expect(await waiters.until(() => false, 10_000)).toBe(false);
    waiters.close();
    expect(await waiting).toBe(false);
    expect(await waiters.until(() => false, 10_000)).toBe(false);
  });
});

describe('the backoff', () => {
  it('doubles from half to the whole of its first wait, up to its longest', () => {
    const policy = { firstMs: 100, maxMs: 1_000 };
    const waits = [0, 1, 2, 3, 4, 50].map((attempt) => [
      backoff(policy, attempt, () => 0),
      backoff(policy, attempt, () => 1),
    ]);
    expect(waits).toEqual([
      [50, 100],
      [100, 200],
      [200, 400],
      [400, 800],
      [500, 1_000],
      [500, 1_000],
    ]);
  });
});

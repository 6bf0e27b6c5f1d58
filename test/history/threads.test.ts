/** The threads that answer questions about the past: one at a time, bounded, and the failure of one fails only its own question. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createHistory, type History, type HistoryOptions } from '../../src/projections/history/history.js';
import { silentLogger } from '../../src/kernel/logger.js';
import type { EventStore } from '../../src/storage/event-store.js';
import { testLogChain } from '../support/log-chain.js';
import { projectRoot } from '../support/project-root.js';

const built = pathToFileURL(join(projectRoot, 'dist/test-programs/test/history/children/threads.js'));
const generation = 5;
const events = Array.from({ length: generation }, (_, revision) => ({ revision, text: 'x'.repeat(100_000) }));
const eventStore = {
  loadFoldCheckpoint: async () => undefined,
  async *read() {
    yield* events;
  },
} as unknown as EventStore;
const opened: History[] = [];
const open = (options: Partial<HistoryOptions> = {}): History => {
  const history = createHistory({
    eventStore,
    logChain: testLogChain(),
    logger: silentLogger,
    entry: built,
    ...options,
  });
  opened.push(history);
  return history;
};
afterEach(() => Promise.all(opened.splice(0).map((history) => history.close())));

const unavailable = { code: 'unavailable', hints: { retryAfterSeconds: expect.any(Number) } };
/** Five events of 100,000 characters come as three parts. */
const answered = { parts: 3 };

describe('a question', () => {
  it('has a thread of its own, which gets the log in parts', async () => {
    const { compileEarlier } = open();
    const answers = await Promise.all(['a', 'b', 'c'].map((node) => compileEarlier(node, generation)));
    expect(answers).toEqual([answered, answered, answered]);
  });

  it('leaves nothing at a signal that lives longer', async () => {
    const { compileEarlier } = open();
    const any = vi.spyOn(AbortSignal, 'any');
    for (const node of ['a', 'b']) await compileEarlier(node, generation);
    const joined = any.mock.calls.flatMap(([signals]) => [...signals]);
    any.mockRestore();
    expect(new Set(joined).size).toBe(joined.length);
  });

  it('is turned away when too many wait, and when it has waited too long', async () => {
    const history = open({ waiting: 1, waitMs: 50 });
    const first = history.compileEarlier('silent', generation);
    const [waited, refused] = await Promise.allSettled([
      history.compileEarlier('a', generation),
      history.compileEarlier('b', generation),
    ]);
    expect(waited).toMatchObject({ status: 'rejected', reason: unavailable });
    expect(refused).toMatchObject({ status: 'rejected', reason: unavailable });
    await Promise.all([history.close(), expect(first).rejects.toMatchObject({ code: 'unavailable' })]);
  });

  it.each([
    ['throws', /it is broken/],
    ['crashes', /out of the blue/],
    ['ends', /ended with code 3/],
  ])('whose thread %s fails alone', async (node, reason) => {
    const { compileEarlier } = open();
    const [failed, next] = await Promise.allSettled([
      compileEarlier(node, generation),
      compileEarlier('a', generation),
    ]);
    expect(failed).toMatchObject({ status: 'rejected', reason: { message: expect.stringMatching(reason) } });
    expect(failed).toMatchObject({ reason: { name: 'ThreadLostError' } });
    expect(next).toEqual({ status: 'fulfilled', value: answered });
  });

  it('that takes too long is given up, even if its thread never gives way', async () => {
    const { compileEarlier } = open({ answerMs: 300 });
    await expect(compileEarlier('busy', generation)).rejects.toMatchObject(unavailable);
  });

  it('fails with the store that the log is read from', async () => {
    const read = () => ({
      [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(new Error('the store is away')) }),
    });
    const { compileEarlier } = open({ eventStore: { ...eventStore, read } as unknown as EventStore });
    await expect(compileEarlier('a', generation)).rejects.toThrow('the store is away');
  });
});

it('closing fails what runs and what waits, and starts nothing after it', async () => {
  const history = open();
  const both = Promise.allSettled([
    history.compileEarlier('busy', generation),
    history.compileEarlier('a', generation),
  ]);
  await history.close();
  for (const one of await both) expect(one).toMatchObject({ status: 'rejected', reason: { code: 'unavailable' } });
  await expect(history.compileEarlier('a', generation)).rejects.toMatchObject({ code: 'unavailable' });
});

it('a thread gets nothing of the environment, where secrets may be', async () => {
  expect(await open().compileEarlier('environment', generation)).toEqual([]);
});

it('a thread can run a program that is not compiled yet, as in development', async () => {
  const { compileEarlier } = open({ entry: new URL('children/threads.ts', import.meta.url) });
  expect(await compileEarlier('a', generation)).toEqual(answered);
});

/** The question whether the fold holds what the log holds now: callers share reads, but none from before their call. */
import { describe, expect, it, vi } from 'vitest';
import { createLogHead } from '../../src/delivery/log-head.js';
import type { RecordedEvent } from '../../src/kernel/event.js';
import type { EventStore } from '../../src/storage/event-store.js';

/** A store whose reads of the head are answered by the test, in order. */
function heldStore() {
  const reads: { answer(revision: number | undefined): void; fail(): void }[] = [];
  const store = {
    async *read() {
      const revision = await new Promise<number | undefined>((resolve, reject) =>
        reads.push({ answer: resolve, fail: () => reject(new Error('away')) }),
      );
      if (revision !== undefined) yield { revision } as RecordedEvent;
    },
  } as unknown as EventStore;
  return { store, reads };
}
const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};

describe('the head of the log', () => {
  it('is read, and waited for in the fold', async () => {
    const { store, reads } = heldStore();
    const asked: number[] = [];
    const atHead = createLogHead({
      eventStore: store,
      folded: async (revision) => {
        asked.push(revision);
        return revision !== 8;
      },
      waitMs: 1000,
    });
    const [first, second, third] = [
      [7, true],
      [8, false],
      [undefined, true],
    ] as const;
    for (const [revision, expected] of [first, second, third]) {
      const answer = atHead();
      reads.at(-1)?.answer(revision);
      expect(await answer).toBe(expected);
    }
    expect(asked).toEqual([7, 8, -1]);
    expect(reads).toHaveLength(3);
  });

  it('is read once more for all who ask during a read, after it', async () => {
    const { store, reads } = heldStore();
    const asked: number[] = [];
    const atHead = createLogHead({
      eventStore: store,
      folded: async (revision) => asked.push(revision) > 0,
      waitMs: 1000,
    });
    const answers = [atHead(), atHead(), atHead()];
    await turns();
    expect(reads).toHaveLength(1);
    reads[0]?.answer(1);
    await turns();
    expect(reads).toHaveLength(2);
    answers.push(atHead());
    reads[1]?.answer(2);
    await turns();
    reads[2]?.answer(3);
    await Promise.all(answers);
    expect([asked, reads.length]).toEqual([[1, 2, 2, 3], 3]);
  });

  it('fails for those who asked, and is read anew for those who asked meanwhile', async () => {
    const { store, reads } = heldStore();
    const atHead = createLogHead({ eventStore: store, folded: () => Promise.resolve(true), waitMs: 1000 });
    const [first, second] = [atHead().catch(() => 'failed'), atHead()];
    reads[0]?.fail();
    await turns();
    reads[1]?.answer(1);
    expect(await Promise.all([first, second])).toEqual(['failed', true]);
  });

  it('is not at hand when the store does not answer in time', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const { store } = heldStore();
      const answer = createLogHead({ eventStore: store, folded: () => Promise.resolve(true), waitMs: 1000 })();
      await vi.advanceTimersByTimeAsync(1000);
      expect(await answer).toBe(false);
    } finally {
      vi.useRealTimers();
    }
  });
});

/** The look at the log's head: callers that wait for a position which no read model uses are told, and nobody is told early. */
import { afterEach, describe, expect, it } from 'vitest';
import { silentLogger } from '../../src/kernel/logger.js';
import { createHeadProbe } from '../../src/projections/engine/head-probe.js';
import { createProgress } from '../../src/projections/engine/progress.js';
import { tuning } from '../../src/projections/tuning.js';
import type { EventStore, ResumePoint } from '../../src/storage/event-store.js';
import { eventually } from '../support/eventually.js';

type Item = { readonly kind: 'events' | 'checkpoint' | 'caught_up' } | 'hangs' | 'fails';

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** A probe on a log that ends at 9; the read models have handled everything up to 5. */
function probe(
  items: readonly Item[],
  { head = 9, handled = { commit: 5, prepare: 5 } as ResumePoint | 'start' } = {},
) {
  const asked: unknown[] = [];
  const signals: AbortSignal[] = [];
  const logged: object[] = [];
  let heads = 0;
  const eventStore = {
    async headPosition() {
      heads += 1;
      return head;
    },
    async *subscribe({ signal, ...rest }: { readonly signal: AbortSignal }) {
      asked.push(rest);
      signals.push(signal);
      for (const item of items) {
        if (item === 'fails') throw new Error('away');
        if (item === 'hangs') {
          await new Promise((resolve) => signal.addEventListener('abort', resolve));
          return;
        }
        yield item;
      }
    },
  } as unknown as EventStore;
  const progress = createProgress(5);
  const made = createHeadProbe({
    eventStore,
    streams: ['svc-fleet'],
    progress,
    logger: { ...silentLogger, debug: (fields: object) => void logged.push(fields) },
    handled: () => handled,
  });
  closing.push(async () => {
    progress.close();
    await made.close();
  });
  return { ...made, progress, asked, signals, logged, heads: () => heads };
}
const caughtUp = { kind: 'caught_up' } as const;
const checkpoint = { kind: 'checkpoint' } as const;
const events = { kind: 'events' } as const;

describe('a caller that waits for a position', () => {
  it('is told when nothing between what is handled and the head is for the read models', async () => {
    const { wake, progress, asked, signals } = probe([checkpoint, caughtUp, events]);
    const waiting = progress.untilPosition(9, 5_000);
    wake();
    wake();
    expect(await waiting).toBe(true);
    expect(progress.position()).toBe(9);
    expect(asked).toEqual([{ after: { commit: 5, prepare: 5 }, streams: ['svc-fleet'] }]);
    // The subscription does not stay open.
    await eventually(() => signals[0]?.aborted).toBe(true);
  });

  it('is not told when events are on their way: they tell it themselves', async () => {
    const { wake, progress, asked } = probe([checkpoint, events, caughtUp]);
    void progress.untilPosition(9, 5_000);
    wake();
    await eventually(() => asked.length).toBeGreaterThan(1);
    expect(progress.position()).toBe(5);
  });

  it('is told when it begins to wait right after the last look for others', async () => {
    const { progress, ...rest } = probe([caughtUp]);
    let waiting: Promise<boolean> | undefined;
    const awaited = progress.awaited;
    Object.assign(progress, {
      awaited() {
        if (waiting !== undefined) return awaited();
        queueMicrotask(() => {
          waiting = progress.untilPosition(9, 1_000);
          rest.wake();
        });
        return false;
      },
    });
    rest.wake();
    await eventually(() => waiting).toBeDefined();
    expect(await waiting).toBe(true);
  });

  it('is not told when the log has no such position yet, and no subscription is made', async () => {
    const { wake, progress, asked, heads } = probe([caughtUp], { head: 5 });
    void progress.untilPosition(9, 5_000);
    wake();
    await eventually(() => heads()).toBeGreaterThan(1);
    expect([progress.position(), asked]).toEqual([5, []]);
  });

  it('is told later when the log could not be read at first', async () => {
    const { wake, progress, logged } = probe(['fails']);
    void progress.untilPosition(9, 5_000);
    wake();
    await eventually(() => logged.length).toBeGreaterThan(1);
    expect(logged[0]).toEqual({ error: expect.stringContaining('away') });
  });
});

describe('the head of the log', () => {
  it('is not read when nobody waits any more', async () => {
    const { wake, progress, heads } = probe([caughtUp]);
    const soon = progress.untilPosition(6, 5_000);
    wake();
    progress.passed(6);
    expect(await soon).toBe(true);
    await new Promise((resolve) => setTimeout(resolve, 2 * tuning.probeEveryMs));
    expect(heads()).toBe(0);
    // The next one who waits has it read again.
    const later = progress.untilPosition(9, 5_000);
    wake();
    expect([await later, heads()]).toEqual([true, 1]);
  });

  it('is no longer read when the projections close, however long the log takes to answer', async () => {
    const { wake, close, progress, asked, heads } = probe(['hangs']);
    void progress.untilPosition(9, 5_000);
    wake();
    await eventually(() => asked).toHaveLength(1);
    await close();
    wake();
    await new Promise((resolve) => setTimeout(resolve, 2 * tuning.probeEveryMs));
    expect([heads(), asked.length]).toEqual([1, 1]);
  });
});

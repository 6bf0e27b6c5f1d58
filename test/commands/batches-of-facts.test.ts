/** Batches of facts: their bounds, their retries, and what the log refuses for good. */
import { describe, expect, test } from 'vitest';
import { createStreamBatch, type StreamBatchOptions } from '../../src/commands/stream-batch.js';
import { tuning } from '../../src/commands/tuning.js';
import type { FactOutcome } from '../../src/domain/agents/facts.js';
import { limits } from '../../src/kernel/limits.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { eventOf, refused, storeOf, unavailable, unknown } from '../support/append-outcomes.js';
import { eventually } from '../support/eventually.js';
import { createManualClock } from '../support/manual-clock.js';
import { openTemporaryStores } from '../support/temporary-stores.js';

describe('a batch of facts', () => {
  const batchOf = (store: ReturnType<typeof storeOf>, options: Partial<StreamBatchOptions> = {}) => {
    const refusals: string[] = [];
    const warnings: object[] = [];
    const batch = createStreamBatch('svc-agents-00', {
      eventStore: store,
      logger: { ...silentLogger, warn: (fields) => void warnings.push(fields) },
      gatherMs: 1,
      maxFacts: 1_000_000,
      maxBytes: 1_000_000_000,
      onRefused: ({ type }, cause) => void refusals.push(`${type}: ${cause}`),
      ...options,
    });
    const add = (type: string, bytes?: number): Promise<FactOutcome | string> =>
      batch.add(eventOf(type, bytes)).catch((error: unknown) => String(error));
    return { batch, add, refusals, warnings };
  };

  test('holds as many facts as an append may, in order', async () => {
    const store = storeOf();
    const { add } = batchOf(store);
    const count = limits.events.appendEvents + 1;
    const outcomes = await Promise.all(Array.from({ length: count }, (_, index) => add(`T${index}`)));
    expect(new Set(outcomes)).toEqual(new Set(['recorded']));
    expect(store.appends.map(({ types }) => types.length)).toEqual([limits.events.appendEvents, 1]);
    expect(store.appends.flatMap(({ types }) => types)).toEqual(
      Array.from({ length: count }, (_, index) => `T${index}`),
    );
  });

  test('holds as many bytes as an append may, to the byte', async () => {
    const store = storeOf();
    const { add } = batchOf(store);
    const half = limits.events.appendBytes / 2;
    const rest = half - 56 * 1024;
    await Promise.all([add('A', half), add('B', half), add('C', half), add('D', rest), add('E', 56 * 1024 + 1)]);
    expect(store.appends.map(({ types }) => types.join(''))).toEqual(['AB', 'CD', 'E']);
  });

  test('takes a fact of the largest size, and refuses a larger one', async () => {
    const store = storeOf();
    const { add, refusals } = batchOf(store);
    expect(await add('A', tuning.factBytes)).toBe('recorded');
    expect(await add('B', tuning.factBytes + 1)).toBe('refused');
    expect([store.appends.length, refusals.length]).toEqual([1, 1]);
  });

  test('is bounded by facts and by bytes, and takes new ones when it is written', async () => {
    const store = storeOf();
    const { add } = batchOf(store, { maxFacts: 3, maxBytes: 1000 });
    const full = [add('A', 500), add('B', 500), add('C', 300)];
    expect(await full[2]).toContain('too many facts');
    expect(await Promise.all(full.slice(0, 2))).toEqual(['recorded', 'recorded']);
    const many = await Promise.all(['A', 'B', 'C', 'D'].map((type) => add(type, 250)));
    expect(many.map((outcome) => outcome === 'recorded')).toEqual([true, true, true, false]);
  });

  test('is tried again with what is left of it, and a problem is told once', async () => {
    const store = storeOf(unavailable, unknown, { kind: 'conflict', actual: 3 });
    let later: Promise<unknown> | undefined;
    const { add, batch, warnings } = batchOf({
      ...store,
      append: async (...args) => {
        if (store.appends.length === 0) {
          later = add('C');
          batch.drop(({ type }) => type === 'A');
        }
        return store.append(...args);
      },
    });
    const outcomes = [add('A'), add('B')];
    expect(await Promise.all(outcomes)).toEqual(['superseded', 'recorded']);
    expect(await later).toBe('recorded');
    expect(store.appends.map(({ types }) => types.join(''))).toEqual(['AB', 'B', 'B', 'B', 'C']);
    expect(warnings).toHaveLength(1);
    await batch.close();
  });

  test('that was written, though nobody knows, is tried again without what was dropped meanwhile', async () => {
    const stores = await openTemporaryStores(createManualClock());
    let tries = 0;
    const { add, batch } = batchOf({
      ...storeOf(),
      async append(...args) {
        const outcome = await stores.eventStore.append(...args);
        tries += 1;
        if (tries > 1) return outcome;
        batch.drop(({ type }) => type === 'B');
        return unknown;
      },
    });
    expect(await Promise.all([add('A'), add('B'), add('C')])).toEqual(['recorded', 'superseded', 'recorded']);
    expect(await add('D')).toBe('recorded');
    await stores.close();
  });

  test('is refused for good at the third refusal: one by one when an append is, all that wait when the stream is', async () => {
    const one = storeOf(refused('append'), refused('append'), refused('append'), refused('append'));
    const byAppend = batchOf(one);
    expect(await Promise.all([byAppend.add('A'), byAppend.add('B')])).toEqual(['refused', 'recorded']);
    expect(one.appends.map(({ types }) => types.join(''))).toEqual(['AB', 'AB', 'AB', 'A', 'B']);
    expect(byAppend.refusals).toEqual(['A: no']);
    const all = storeOf(refused('stream'), refused('stream'), refused('stream'));
    const byStream = batchOf(all);
    const outcomes = [byStream.add('A'), byStream.add('B')];
    await eventually(() => all.appends.length).toBeGreaterThan(1);
    const behind = byStream.add('C');
    expect(await Promise.all([...outcomes, behind])).toEqual(['refused', 'refused', 'refused']);
    expect(await byStream.add('D')).toBe('recorded');
    const alone = storeOf(refused('append'), refused('append'), refused('append'));
    expect(await batchOf(alone).add('A')).toBe('refused');
    expect(alone.appends).toHaveLength(3);
  });

  test('tries the rest again when one of them cannot be written now', async () => {
    const store = storeOf(refused('append'), refused('append'), refused('append'), unavailable);
    const { add, refusals } = batchOf(store);
    expect(await Promise.all([add('A'), add('B')])).toEqual(['recorded', 'recorded']);
    expect(store.appends.map(({ types }) => types.join(''))).toEqual(['AB', 'AB', 'AB', 'A', 'AB']);
    expect(refusals).toEqual([]);
  });

  test('is given up when the store fails or the service closes, and nothing is taken afterwards', async () => {
    const failing = storeOf();
    const broken = batchOf({ ...failing, append: () => Promise.reject(new Error('bug')) });
    expect(await Promise.all([broken.add('A'), broken.add('B')])).toEqual([
      expect.stringContaining('did not take'),
      expect.stringContaining('did not take'),
    ]);
    const store = storeOf(unavailable, unavailable);
    const closing = batchOf(store, { gatherMs: 60_000 });
    const waiting = closing.add('A');
    await closing.batch.close();
    expect([await waiting, store.appends.length]).toEqual([expect.stringContaining('shut down'), 1]);
    expect(await closing.add('B')).toContain('too many facts');
  });
});

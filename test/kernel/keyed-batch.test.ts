/** The batched writes behind telemetry and last-good snapshots: newest per key, bounded, nothing lost on failures. */
import { describe, expect, it } from 'vitest';
import { createKeyedBatch, type KeyedBatchOptions } from '../../src/kernel/keyed-batch.js';

function batch(overrides: Partial<KeyedBatchOptions<string>> = {}) {
  const written: string[][] = [];
  const dropped: string[] = [];
  const created = createKeyedBatch<string>({
    everyMs: 1,
    batchEntries: 10,
    maxEntries: 100,
    retry: { firstMs: 1, maxMs: 2 },
    closeWithinMs: 1000,
    write: async (entries) => {
      written.push(entries.map(([key, value]) => `${key}=${value}`));
    },
    onError: () => undefined,
    onDropped: (key) => dropped.push(key),
    ...overrides,
  });
  return { created, written, dropped };
}

const until = async (condition: () => boolean): Promise<void> => {
  for (let round = 0; round < 5000 && !condition(); round += 1) await new Promise((resolve) => setTimeout(resolve, 1));
  expect(condition()).toBe(true);
};

describe('a keyed batch', () => {
  it('writes the newest value of each key without being told to', async () => {
    const { created, written } = batch();
    created.put('a', '1');
    created.put('b', '1');
    created.put('a', '2');
    await until(() => written.length > 0);
    expect(written).toEqual([['b=1', 'a=2']]);
    expect(created.size).toBe(0);
  });

  it('writes a value that was put during the write of an older one of its key', async () => {
    let release: (() => void) | undefined;
    const seen: string[] = [];
    const { created } = batch({
      write: async (entries) => {
        for (const [key, value] of entries) seen.push(`${key}=${value}`);
        if (seen.length === 1) await new Promise<void>((resolve) => (release = resolve));
      },
    });
    created.put('a', '1');
    await until(() => release !== undefined);
    created.put('a', '2');
    release?.();
    await until(() => created.size === 0);
    expect(seen).toEqual(['a=1', 'a=2']);
  });

  it('tries again after failures and loses nothing', async () => {
    let failures = 3;
    const seen: string[] = [];
    const { created } = batch({
      write: async (entries) => {
        if (failures-- > 0) throw new Error('away');
        for (const [key, value] of entries) seen.push(`${key}=${value}`);
      },
    });
    created.put('a', '1');
    await until(() => created.size === 0);
    expect(seen).toEqual(['a=1']);
  });

  it('drops the value that has waited longest above its bounds of entries and weight', async () => {
    const { created, dropped } = batch({
      everyMs: 60_000,
      maxEntries: 2,
      weigh: (value) => value.length,
      maxWeight: 10,
    });
    created.put('a', 'x');
    created.put('b', 'x');
    created.put('c', 'x');
    expect(dropped).toEqual(['a']);
    created.put('d', 'x'.repeat(10));
    expect(dropped).toEqual(['a', 'b', 'c']);
    await created.close();
  });

  it('keeps to the bounds of one write', async () => {
    const { created, written } = batch({ batchEntries: 2, weigh: (value) => value.length, batchWeight: 3 });
    for (const [key, value] of [
      ['a', 'x'],
      ['b', 'x'],
      ['c', 'xx'],
      ['d', 'xx'],
      ['e', 'xxxxx'],
    ] as const)
      created.put(key, value);
    await created.flush();
    expect(written.map((entries) => entries.length)).toEqual([2, 1, 1, 1]);
  });

  it('writes on close what waits, and gives up on a store that does not answer', async () => {
    const { created, written } = batch({ everyMs: 60_000 });
    created.put('a', '1');
    await created.close();
    expect(written).toEqual([['a=1']]);

    const errors: unknown[] = [];
    const stuck = batch({
      write: () => new Promise(() => undefined),
      closeWithinMs: 5,
      onError: (error) => errors.push(error),
    });
    stuck.created.put('a', '1');
    await stuck.created.close();
    expect(String(errors[0])).toContain('1 entries could not be written');
  });
});

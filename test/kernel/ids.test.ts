/** Ids: UUIDs of version 7 that sort in the order in which they were made. */
import { describe, expect, it } from 'vitest';
import { createIds, isUuid, randomIds } from '../../src/kernel/ids.js';

const version7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const many = (ids: { next(): string }, count: number): string[] => Array.from({ length: count }, () => ids.next());
const timeOf = (id: string): number => Number.parseInt(id.replace('-', '').slice(0, 12), 16);

describe('ids', () => {
  it('are UUIDs of version 7 and begin with the time', () => {
    const at = Date.parse('2026-01-02T03:04:05.678Z');
    const id = createIds(() => at).next();
    expect(id).toMatch(version7);
    expect(isUuid(id)).toBe(true);
    expect(timeOf(id)).toBe(at);
  });

  it('differ, and sort in the order in which they were made, within a millisecond and beyond its count', () => {
    const made = many(
      createIds(() => 1_700_000_000_000),
      20_000,
    );
    expect(new Set(made).size).toBe(made.length);
    expect([...made].sort()).toEqual(made);
    expect(made.every((id) => version7.test(id))).toBe(true);
    expect(timeOf(made.at(-1) ?? '') - timeOf(made[0] ?? '')).toBeLessThan(15);
  });

  it('go on in order while the clock runs backwards', () => {
    let now = 1_700_000_000_000;
    const ids = createIds(() => (now -= 7));
    const made = many(ids, 100);
    now += 10_000;
    made.push(...many(ids, 100));
    expect([...made].sort()).toEqual(made);
  });

  it('cannot be told from each other: two makers at the same time share no random bits', () => {
    const tail = (id: string): string => id.slice(19);
    const makers = [createIds(() => 1), createIds(() => 1)];
    const tails = makers.flatMap((maker) => many(maker, 1_000)).map(tail);
    expect(new Set(tails).size).toBe(2_000);
    // Every hex digit occurs at every place but that of the variant.
    for (let place = 2; place < 17; place += 1) {
      if (tails[0]?.[place] === '-') continue;
      expect(new Set(tails.map((one) => one[place])).size).toBe(16);
    }
  });

  it('are of the system clock', () => {
    const before = Date.now();
    const at = timeOf(randomIds.next());
    expect(at).toBeGreaterThanOrEqual(before - 1);
    expect(at).toBeLessThanOrEqual(Date.now() + 1_000);
  });
});

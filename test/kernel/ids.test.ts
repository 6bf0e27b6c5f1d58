/** Ids: UUIDs of version 7 that sort in the order in which they were made. */
import { describe, expect, it } from 'vitest';
import { isUuid, randomIds } from '../../src/kernel/ids.js';

const version7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const timeOf = (id: string): number => Number.parseInt(id.replace('-', '').slice(0, 12), 16);

describe('ids', () => {
  it('are UUIDs of version 7 and begin with the time', () => {
    const before = Date.now();
    const id = randomIds.next();
    expect(id).toMatch(version7);
    expect(isUuid(id)).toBe(true);
    expect(timeOf(id)).toBeGreaterThanOrEqual(before - 1);
    expect(timeOf(id)).toBeLessThanOrEqual(Date.now() + 1_000);
  });

  it('differ, and sort in the order in which they were made', () => {
    const made = Array.from({ length: 20_000 }, () => randomIds.next());
    expect(new Set(made).size).toBe(made.length);
    expect([...made].sort()).toEqual(made);
    expect(made.every((id) => version7.test(id))).toBe(true);
  });
});

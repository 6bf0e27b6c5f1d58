/** What is answered of nodes while the read store is away: what was read last. */
import { beforeEach, describe, expect, it } from 'vitest';
import { ServiceError } from '../../src/kernel/errors.js';
import type { LastKnown } from '../../src/reports/last-known.js';
import { lastKnown } from '../../src/reports/last-known.js';
import type { PresenceFacts } from '../../src/reports/port.js';

const presence = (session_id: string): PresenceFacts => ({
  session_id,
  instance_id: 'i',
  pushed_generation: 1,
  pushed_at: null,
});

let error: Error | undefined;
let away: boolean;
let reads: number;
let held: Map<string, PresenceFacts>;
let reports: LastKnown;

const of =
  <T>(value: T) =>
  async (): Promise<T> => {
    reads += 1;
    if (error !== undefined) throw error;
    return value;
  };

beforeEach(() => {
  [error, away, reads, held] = [undefined, false, 0, new Map()];
  const vitals = { last_seen_at: 'then', cpu_usage: 0.5, memory_usage: 0.5, uptime_seconds: 1 };
  reports = lastKnown({
    telemetry: {
      presence: of(presence('far')),
      online: of(new Map([['a', presence('far')]])),
      vitals: of(new Map([['a', vitals]])),
      listeners: of(new Map([['a', { reported_at: 'then', runs_generation: null, listeners: [], gone: {} }]])),
      links: of(new Map()),
      reportedMetrics: of(new Map()),
      held: () => held,
    },
    away: () => away,
  });
});

/** Everything that is known of two nodes. */
const everything = async () => ({
  presence: await reports.telemetry.presence('a'),
  online: [...(await reports.telemetry.online())],
  vitals: [...(await reports.telemetry.vitals(['a', 'b']))],
  listeners: [...(await reports.telemetry.listeners(['a']))],
  links: [...(await reports.telemetry.links(['a']))],
});

describe('while the read store is away', () => {
  it.each([
    ['a read fails', () => (error = new ServiceError('unavailable', 'away'))],
    ['it is known to be away', () => (away = true)],
  ])('what was read before is answered, and said to be stale: %s', async (_, lose) => {
    const before = await everything();
    expect(before.vitals).toHaveLength(1);
    expect(reports.stale()).toBe(false);
    lose();
    expect(await everything()).toEqual(before);
    expect(reports.stale()).toBe(true);
    [error, away] = [undefined, false];
    expect(await everything()).toEqual(before);
    expect(reports.stale()).toBe(false);
  });

  it('nobody waits for a store that is known to be away', async () => {
    away = true;
    await everything();
    expect(reads).toBe(0);
  });

  it('a node that was never asked for has told nothing, and one with a session here is online', async () => {
    away = true;
    held.set('a', presence('here'));
    expect(await everything()).toMatchObject({
      vitals: [],
      presence: { session_id: 'here' },
    });
    expect([...(await reports.telemetry.online()).keys()]).toEqual(['a']);
  });
});

it('an error that is no outage is not hidden', async () => {
  error = new TypeError('a fault');
  await expect(reports.telemetry.online()).rejects.toThrow('a fault');
});

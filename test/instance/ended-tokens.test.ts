/** A password change is answered once every live instance refuses the older tokens, or after a while. */
import { expect, test } from 'vitest';
import { tokensEnded } from '../../src/instance/revocations.js';
import type { LiveInstance } from '../../src/instance/instance-lease.js';
import { systemClock } from '../../src/kernel/clock.js';
import { silentLogger } from '../../src/kernel/logger.js';

const lease = (instance_id: string, accounts: number): LiveInstance => ({
  instance_id,
  accounts,
  revoked_up_to: 0,
  compiler_version: 1,
  activity: {
    heartbeats_per_minute: 0,
    last_5m: { bytes_in: 0, bytes_out: 0, total_sessions: 0, error_sessions: 0 },
  },
  started_at: '2026-01-01T00:00:00.000Z',
});

const ended = (leases: () => readonly LiveInstance[], timeoutMs: number): Promise<boolean> => {
  const deps = { instanceId: 'a', clock: systemClock, logger: silentLogger, liveInstances: async () => leases() };
  return tokensEnded(deps, 7, timeoutMs);
};

test('this instance is not waited for, nor one that has read the change', async () => {
  expect(await ended(() => [], 0)).toBe(true);
  expect(await ended(() => [lease('a', 6), lease('b', 7), lease('c', 9)], 0)).toBe(true);
});

test('waits for an instance that has not read the change, and no longer than the time', async () => {
  let read = 6;
  expect(await ended(() => [lease('b', read)], 50)).toBe(false);
  const waiting = ended(() => [lease('b', read)], 20_000);
  read = 7;
  expect(await waiting).toBe(true);
});

test('leases that cannot be read say nothing about the others', async () => {
  let away = true;
  const leases = (): readonly LiveInstance[] => {
    if (away) throw new Error('out of reach');
    return [lease('b', 7)];
  };
  expect(await ended(leases, 50)).toBe(false);
  const waiting = ended(leases, 20_000);
  away = false;
  expect(await waiting).toBe(true);
});

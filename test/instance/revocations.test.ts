/** A revoked node's sessions count as ended once every live instance has closed them. */
import { expect, test } from 'vitest';
import { silentLogger } from '../../src/kernel/logger.js';
import { systemClock } from '../../src/kernel/clock.js';
import type { LiveInstance } from '../../src/instance/instance-lease.js';
import { createRevocations, type Revocations } from '../../src/instance/revocations.js';

/** Instances that share a list of leases, each with sessions that end when the test says so. */
function fleet(ids: readonly string[]) {
  const leases = new Map<string, LiveInstance>();
  const instances = ids.map((instanceId) => {
    const local = { revision: 0, end: (): void => undefined, sessions: Promise.resolve(true) };
    const publish = async (): Promise<void> => {
      leases.set(instanceId, {
        instance_id: instanceId,
        revoked_up_to: revocations.closedUpTo(),
        accounts: 0,
        compiler_version: 1,
        activity: {
          heartbeats_per_minute: 0,
          last_5m: { bytes_in: 0, bytes_out: 0, total_sessions: 0, error_sessions: 0 },
        },
        started_at: '2026-01-01T00:00:00.000Z',
      });
    };
    const revocations: Revocations = createRevocations({
      instanceId,
      clock: systemClock,
      logger: silentLogger,
      revision: () => local.revision,
      sessionsEnded: () => local.sessions,
      liveInstances: async () => [...leases.values()],
      publish,
    });
    return {
      revocations,
      local,
      publish,
      /** Folds the revocation at a revision while a session of the node is still open. */
      fold(revision: number, open: boolean): void {
        if (open) local.sessions = new Promise((resolve) => (local.end = () => resolve(true)));
        local.revision = revision;
        revocations.revoked('node');
      },
    };
  });
  return { leases, instances };
}

test('a single instance answers once its own sessions are closed', async () => {
  const { instances } = fleet(['a']);
  instances[0]!.fold(7, false);
  expect(await instances[0]!.revocations.ended('node', 1_000)).toBe(true);
});

test('waits for another instance that still has a session, and succeeds once that is closed', async () => {
  const { instances, leases } = fleet(['a', 'b']);
  const [a, b] = instances;
  await Promise.all(instances.map((instance) => instance.publish()));
  a!.fold(7, false);
  b!.fold(7, true);
  expect(await a!.revocations.ended('node', 100)).toBe(false);
  b!.local.end();
  expect(await a!.revocations.ended('node', 2_000)).toBe(true);
  expect(leases.get('b')?.revoked_up_to).toBe(7);
});

test('waits for a live instance that has not seen the revocation, but not for one whose lease has ended', async () => {
  const { instances, leases } = fleet(['a', 'b']);
  await Promise.all(instances.map((instance) => instance.publish()));
  instances[0]!.fold(7, false);
  expect(await instances[0]!.revocations.ended('node', 100)).toBe(false);
  leases.delete('b');
  expect(await instances[0]!.revocations.ended('node', 1_000)).toBe(true);
});

test('a lease that is renewed while sessions are being closed does not announce the revocation as cut', async () => {
  const { instances, leases } = fleet(['a', 'b']);
  const [a, b] = instances;
  await Promise.all(instances.map((instance) => instance.publish()));
  a!.fold(7, false);
  b!.fold(7, true);
  await b!.publish();
  expect(leases.get('b')!.revoked_up_to).toBe(0);
  expect(await a!.revocations.ended('node', 100)).toBe(false);
  b!.local.end();
  expect(await a!.revocations.ended('node', 1_000)).toBe(true);
  expect(leases.get('b')!.revoked_up_to).toBe(7);
});

test('waits for a revocation that this instance has not folded yet', async () => {
  const { instances } = fleet(['a', 'b']);
  const [a, b] = instances;
  await Promise.all(instances.map((instance) => instance.publish()));
  expect(await a!.revocations.ended('node', 50, 7)).toBe(false);
  const ended = a!.revocations.ended('node', 5_000, 7);
  a!.fold(7, false);
  b!.fold(7, false);
  expect(await ended).toBe(true);
});

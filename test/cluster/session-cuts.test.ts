/** A revoked node's sessions count as ended only when every live instance has cut them. */
import { expect, test } from 'vitest';
import { silentLogger } from '../../src/kernel/logger.js';
import { systemClock } from '../../src/kernel/clock.js';
import type { LiveInstance } from '../../src/cluster/instance-lease.js';
import { createSessionCuts } from '../../src/cluster/session-cuts.js';
import type { SessionCuts } from '../../src/cluster/session-cuts.js';

/** Instances that share a list of leases, each with sessions that end when the test says so. */
function fleet(ids: readonly string[]) {
  const leases = new Map<string, LiveInstance>();
  const instances = ids.map((instanceId) => {
    const own = { revision: 0, end: (): void => undefined, sessions: Promise.resolve(true) };
    const publish = async (): Promise<void> => {
      leases.set(instanceId, {
        instance_id: instanceId,
        position: 0,
        cut: cuts.cut(),
        compiler_version: 1,
        started_at: '2026-01-01T00:00:00.000Z',
      });
    };
    const cuts: SessionCuts = createSessionCuts({
      instanceId,
      clock: systemClock,
      logger: silentLogger,
      revision: () => own.revision,
      sessionsEnded: () => own.sessions,
      liveInstances: async () => [...leases.values()],
      publish,
    });
    return {
      cuts,
      own,
      publish,
      /** Folds the revocation at a revision while a session of the node is still open. */
      fold(revision: number, open: boolean): void {
        if (open) own.sessions = new Promise((resolve) => (own.end = () => resolve(true)));
        own.revision = revision;
        cuts.revoked('node');
      },
    };
  });
  return { leases, instances };
}

test('a single instance answers as soon as its own sessions are gone', async () => {
  const { instances } = fleet(['a']);
  instances[0]!.fold(7, false);
  expect(await instances[0]!.cuts.ended('node', 1_000)).toBe(true);
});

test('it waits for the instance that still has a session, and is true once that one has cut it', async () => {
  const { instances, leases } = fleet(['a', 'b']);
  const [a, b] = instances;
  await Promise.all(instances.map((instance) => instance.publish()));
  a!.fold(7, false);
  b!.fold(7, true);
  expect(await a!.cuts.ended('node', 100)).toBe(false);
  b!.own.end();
  expect(await a!.cuts.ended('node', 2_000)).toBe(true);
  expect(leases.get('b')?.cut).toBe(7);
});

test('an instance that has not yet seen the revocation is waited for; one that is gone is not', async () => {
  const { instances, leases } = fleet(['a', 'b']);
  await Promise.all(instances.map((instance) => instance.publish()));
  instances[0]!.fold(7, false);
  expect(await instances[0]!.cuts.ended('node', 100)).toBe(false);
  leases.delete('b');
  expect(await instances[0]!.cuts.ended('node', 1_000)).toBe(true);
});

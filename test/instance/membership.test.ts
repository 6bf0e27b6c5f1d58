/** An instance joins the others: its lease, and the revocations that it carries out. */
import type { Activity } from '../../src/reports/port.js';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { liveInstances } from '../../src/instance/instance-lease.js';
import { joinCluster, type Membership, type MembershipDeps } from '../../src/instance/membership.js';
import { sleep } from '../../src/kernel/background.js';
import { systemClock } from '../../src/kernel/clock.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { eventually } from '../support/eventually.js';
import { shortSleeps } from '../support/short-sleeps.js';
import { openTemporaryStores, type TemporaryStores } from '../support/temporary-stores.js';

let stores: TemporaryStores;
beforeEach(async () => {
  stores = await openTemporaryStores(systemClock);
});
afterEach(() => stores.close());

const join = (instanceId: string, over: Partial<MembershipDeps>): Promise<Membership> =>
  joinCluster({
    readStore: stores.readStore,
    instanceId,
    clock: systemClock,
    logger: silentLogger,
    compilerVersion: 1,
    activity: () => took(0),
    revision: () => 0,
    accounts: () => 0,
    onTokensEnded: () => undefined,
    onRevoked: () => undefined,
    onSessionOpened: () => undefined,
    sessionsEnded: async () => true,
    ...over,
  });

test('a password change that is read is stated in the lease at once, and another instance waits for that', async () => {
  const told: (() => void)[] = [];
  const read = [4, 4];
  const member = (index: number, instanceId: string) =>
    join(instanceId, {
      accounts: () => read[index] ?? 0,
      onTokensEnded: (listener) => void told.push(listener),
    });
  const members = await Promise.all([member(0, 'a'), member(1, 'b')]);
  expect(await members[0]!.tokensEnded(4, 0)).toBe(true);
  read[0] = 5;
  expect(await members[0]!.tokensEnded(5, 50)).toBe(false);
  const waiting = members[0]!.tokensEnded(5, 20_000);
  read[1] = 5;
  // Long before the next renewal.
  told[1]!();
  const began = performance.now();
  expect(await waiting).toBe(true);
  expect(performance.now() - began).toBeLessThan(2_500);
  await Promise.all(members.map(({ close }) => close()));
});

test('a revocation that is folded while the instance joins is carried out, and then stated in its lease', async () => {
  let revoke = (_nodeId: string): void => undefined;
  let closeSession = (): void => undefined;
  const session = new Promise<true>((resolve) => (closeSession = () => resolve(true)));
  const joining = join('a', {
    revision: () => 7,
    onRevoked: (listener) => void (revoke = listener),
    sessionsEnded: async (_nodeId, timeoutMs) => Promise.race([session, sleep(timeoutMs).then(() => false)]),
  });
  revoke('node');
  const member = await joining;
  const revokedUpTo = async () => (await liveInstances(stores.readStore))[0]?.revoked_up_to;
  expect(await member.sessionsEnded('node', 50)).toBe(false);
  closeSession();
  expect(await member.sessionsEnded('node', 2_000)).toBe(true);
  await eventually(revokedUpTo).toBe(7);
  await member.close();
  expect(await revokedUpTo()).toBeUndefined();
});

const took = (heartbeats_per_minute: number): Activity => ({
  heartbeats_per_minute,
  last_5m: {
    bytes_in: heartbeats_per_minute * 2,
    bytes_out: heartbeats_per_minute * 3,
    total_sessions: heartbeats_per_minute * 5,
    error_sessions: heartbeats_per_minute * 7,
  },
});

test('what all live instances took from agents is added up', async () => {
  const sleeps = shortSleeps();
  onTestFinished(sleeps.restore);
  const [one, two] = [await join('a', { activity: () => took(30) }), await join('b', { activity: () => took(12) })];
  // An instance reads what the others say when it renews its lease.
  await eventually(() => [one.activity(), two.activity()]).toEqual([took(42), took(42)]);
  await two.close();
  await eventually(one.activity).toEqual(took(30));
  await one.close();
});

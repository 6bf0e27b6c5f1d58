/** An instance joins the others: its lease, and the revocations that it carries out. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { liveInstances } from '../../src/cluster/instance-lease.js';
import { joinCluster } from '../../src/cluster/membership.js';
import { sleep } from '../../src/kernel/background.js';
import { systemClock } from '../../src/kernel/clock.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { eventually } from '../support/eventually.js';
import { openTemporaryStores } from '../support/temporary-stores.js';
import type { TemporaryStores } from '../support/temporary-stores.js';

let stores: TemporaryStores;
beforeEach(async () => {
  stores = await openTemporaryStores(systemClock);
});
afterEach(() => stores.close());

test('a revocation that is folded while the instance joins is carried out, and then stated in its lease', async () => {
  let revoke = (_nodeId: string): void => undefined;
  let closeSession = (): void => undefined;
  const session = new Promise<true>((resolve) => (closeSession = () => resolve(true)));
  const joining = joinCluster({
    readStore: stores.readStore,
    instanceId: 'a',
    clock: systemClock,
    logger: silentLogger,
    compilerVersion: 1,
    position: () => 0,
    revision: () => 7,
    onRevoked: (listener) => void (revoke = listener),
    sessionsEnded: async (_nodeId, timeoutMs) => Promise.race([session, sleep(timeoutMs).then(() => false)]),
  });
  revoke('node');
  const member = await joining;
  const cut = async () => (await liveInstances(stores.readStore))[0]?.cut;
  expect(await member.sessionsEnded('node', 50)).toBe(false);
  closeSession();
  expect(await member.sessionsEnded('node', 2_000)).toBe(true);
  await eventually(cut).toBe(7);
  await member.close();
  expect(await cut()).toBeUndefined();
});

/** The server's clock, read from the `date` of an answer (`src/storage/eventstoredb/server-time.ts`). */
import { expect, test } from 'vitest';
import type { ServiceError } from '../../../src/kernel/errors.js';
import { silentLogger } from '../../../src/kernel/logger.js';
import type { EventStore } from '../../../src/storage/event-store.js';
import { openEventStoreDb } from '../../../src/storage/eventstoredb/open.js';
import { closersAfterEach } from '../../support/closers.js';
import { startEventStoreDb, type EventStoreDbServer } from '../../servers/eventstoredb/server.js';

const closers = closersAfterEach();

async function server(...options: Parameters<typeof startEventStoreDb>): Promise<EventStoreDbServer> {
  const made = await startEventStoreDb(...options);
  closers.push(() => made.close());
  return made;
}

function open(url: string, serverTimeMs = 5_000): EventStore {
  const store = openEventStoreDb({ url, logger: silentLogger, tuning: { serverTimeMs } });
  closers.push(() => store.close());
  return store;
}

const ahead = async (store: EventStore): Promise<number> => ((await store.time())?.at ?? Number.NaN) - Date.now();
/** A second in the header, half a second of guessing, and a busy machine. */
const tolerance = 1_500;

test('is told to the second, whichever way it is wrong', async () => {
  const one = await server();
  const store = open(one.url);
  for (const clockAheadMs of [0, 45_000, -45_000, 2 * 86_400_000]) {
    one.faults.clockAheadMs = clockAheadMs;
    expect(Math.abs((await ahead(store)) - clockAheadMs)).toBeLessThan(tolerance);
  }
  expect((await store.time())?.kind).toBe('clock');
});

test('is that of the leader', async () => {
  const leader = await server();
  const follower = await server({ log: leader.log });
  follower.faults.leader = { host: '127.0.0.1', port: leader.port };
  follower.faults.clockAheadMs = -86_400_000;
  leader.faults.clockAheadMs = 86_400_000;
  const store = open(`esdb://127.0.0.1:${follower.port},127.0.0.1:${leader.port}?tls=false`);
  expect(Math.abs((await ahead(store)) - 86_400_000)).toBeLessThan(tolerance);
});

test('is unknown when answers carry no date, and unavailable when there is no answer', async () => {
  const one = await server();
  const store = open(one.url, 1_000);
  one.faults.dates = false;
  await expect.poll(() => store.time().catch(() => 'unavailable'), { timeout: 10_000 }).toBeUndefined();
  one.faults.silentGossip = true;
  // The test server may end the call just before the client does, and then tells the time after all.
  const told = () => store.time().catch(({ code }: ServiceError) => code);
  await expect.poll(told, { timeout: 10_000 }).toBe('unavailable');
  one.faults.silentGossip = false;
  one.faults.dates = true;
  await expect.poll(() => ahead(store).then(Math.abs, () => Infinity), { timeout: 10_000 }).toBeLessThan(tolerance);
  await one.refuse();
  await expect(store.time()).rejects.toMatchObject({ code: 'unavailable' });
  await one.listen();
  await expect.poll(() => ahead(store).then(Math.abs, () => Infinity), { timeout: 10_000 }).toBeLessThan(tolerance);
});

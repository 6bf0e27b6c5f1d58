/** The newest tries in the read store (`docs/contract/automation.md#webhooks`, `deliveries`), and what does not stay there. */
import { expect, test } from 'vitest';
import { timestamp } from '../../src/kernel/clock.js';
import { randomIds } from '../../src/kernel/ids.js';
import { openDeliveries } from '../../src/webhooks/deliveries.js';
import { createManualClock } from '../support/manual-clock.js';
import { storesInMemory } from '../support/stores-in-memory.js';

const tried = { type: 'command', cursor: null, status: 204, duration_ms: 1, attempt: 1, error: null } as const;

test('nothing stays of a webhook that is gone, though it was recorded after its end, or the store was away then', async () => {
  const stores = storesInMemory();
  const clock = createManualClock();
  const deliveries = await openDeliveries(stores.readStore, randomIds, clock);
  const add = (id: string, message_id: string): Promise<void> =>
    deliveries.add(id, { ...tried, at: timestamp(clock.now()), message_id });
  const kept = async (): Promise<readonly string[]> =>
    (await Promise.all(['here', 'gone'].map((id) => deliveries.newest(id, 2_000)))).flat().map((one) => one.message_id);
  for (let index = 0; index < 15; index += 1) await add('gone', `old ${index}`);
  await add('here', 'old');
  clock.advance(25 * 3_600_000);
  // Perhaps of a webhook that this instance does not know yet.
  await add('gone', 'new');
  await deliveries.removeGone((id) => id === 'gone');
  expect(await kept()).toEqual(['old', 'new']);
  clock.advance(25 * 3_600_000);
  await deliveries.removeGone((id) => id === 'gone');
  expect(await kept()).toEqual(['old']);
  await stores.close();
});

test('of processes that end soon no more are kept than of one that lives long', async () => {
  const stores = storesInMemory();
  const clock = createManualClock();
  for (let starts = 0; starts < 20; starts += 1) {
    const deliveries = await openDeliveries(stores.readStore, randomIds, clock);
    for (let count = 0; count < 10; count += 1) {
      clock.advance(1_000);
      await deliveries.add('a', { ...tried, at: timestamp(clock.now()), message_id: `${starts} ${count}` });
    }
  }
  const all = await (await openDeliveries(stores.readStore, randomIds, clock)).newest('a', 2_000);
  expect(all.length).toBeLessThanOrEqual(50 + 16);
  expect(all.slice(0, 2).map(({ message_id }) => message_id)).toEqual(['19 9', '19 8']);
  await stores.close();
});

test('those of a clock that was ahead do not stay the newest', async () => {
  const stores = storesInMemory();
  const clock = createManualClock();
  const deliveries = await openDeliveries(stores.readStore, randomIds, clock);
  const add = (message_id: string): Promise<void> =>
    deliveries.add('a', { ...tried, at: timestamp(clock.now()), message_id });
  clock.jump(24 * 3_600_000);
  for (let count = 0; count < 60; count += 1) await add('ahead');
  clock.jump(-24 * 3_600_000);
  for (let count = 0; count < 20; count += 1) await add(`right ${count}`);
  expect((await deliveries.newest('a', 50)).map(({ message_id }) => message_id)).toEqual(
    Array.from({ length: 20 }, (_, index) => `right ${19 - index}`),
  );
  await stores.close();
});

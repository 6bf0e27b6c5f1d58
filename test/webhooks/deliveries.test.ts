/** The newest tries in the read store (`docs/contract/automation.md#webhooks`, `deliveries`): nothing stays of a webhook that is gone. */
import { expect, test } from 'vitest';
import { timestamp } from '../../src/kernel/clock.js';
import { randomIds } from '../../src/kernel/ids.js';
import { openDeliveries } from '../../src/webhooks/deliveries.js';
import { createManualClock } from '../support/manual-clock.js';
import { storesInMemory } from '../support/stores-in-memory.js';

test('nothing stays of a webhook that is gone, though it was recorded after its end, or the store was away then', async () => {
  const stores = storesInMemory();
  const clock = createManualClock();
  const deliveries = await openDeliveries(stores.readStore, randomIds, clock);
  const add = (id: string, message: string): Promise<void> => {
    const tried = { type: 'command', cursor: null, status: 204, duration_ms: 1, attempt: 1, error: null } as const;
    return deliveries.add(id, { ...tried, at: timestamp(clock.now()), message_id: message });
  };
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

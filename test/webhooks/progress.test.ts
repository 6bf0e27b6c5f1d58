/** The progress of webhooks as answers show it (`docs/contract/automation.md#webhooks`): what an instance remembers of them is bounded. */
import { expect, test } from 'vitest';
import { timestamp } from '../../src/kernel/clock.js';
import { limits } from '../../src/kernel/limits.js';
import { noTries } from '../../src/webhooks/cursors.js';
import type { Delivery } from '../../src/webhooks/port.js';
import { createProgress } from '../../src/webhooks/progress.js';
import { createManualClock } from '../support/manual-clock.js';
import { webhookState } from '../support/webhook-state.js';

const clock = createManualClock();
const made = timestamp(clock.now());

const delivery: Delivery = {
  at: made,
  type: 'command',
  cursor: 'c',
  message_id: 'c',
  status: 204,
  duration_ms: 1,
  attempt: 1,
  error: null,
};

test('while the read store is away the last deliveries are shown, of as many webhooks as there can be', async () => {
  let away = false;
  const progress = createProgress({
    feed: { lag: async () => ({ seconds: 0, caught_up: true }) },
    cursors: {
      refresh: async () => undefined,
      newest: () => undefined,
      checkpoint: async (one) => ({ place: { position: 0, cursor: 'c' }, tries: noTries(one) }),
    },
    deliveries: { newest: async () => [delivery] },
    clock,
    local: () => undefined,
    readStoreAway: () => away,
  });
  const lastOf = async (id: string): Promise<Delivery | null | undefined> =>
    (await progress.of([webhookState(id, made)]))[0]?.last_delivery;
  const ids = Array.from({ length: limits.webhooks.inAll + 1 }, (_, number) => `w${number}`);
  for (const id of ids) expect(await lastOf(id)).toEqual(delivery);
  away = true;
  const [deleted = '', ...others] = ids;
  for (const id of others) expect(await lastOf(id)).toEqual(delivery);
  expect(await lastOf(deleted)).toBe(null);
});

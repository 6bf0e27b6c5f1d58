/** A try whose look-up never ends, and one that begins when all is over. Cites `docs/contract/automation.md#webhooks`. */
import type { lookup } from 'node:dns';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/kernel/clock.js';
import { createSender } from '../../src/webhooks/send.js';

const message = { url: 'http://receiver.example/', headers: {}, body: '{}' };

test('a look-up that never ends is left when the try is called off, at its start as well', async () => {
  let asked = 0;
  const hangs = (() => void (asked += 1)) as unknown as typeof lookup;
  const sender = createSender({ mayDial: () => true, clock: systemClock, lookup: hangs });
  const ending = new AbortController();
  const first = sender.send(message, ending.signal);
  expect(asked).toBe(0);
  await expect.poll(() => asked).toBe(1);
  ending.abort();
  const over = { status: null, error: 'the service shut down meanwhile', retryAfterMs: null };
  expect(await first).toEqual(over);
  expect(await sender.send(message, ending.signal)).toEqual(over);
  sender.close();
});

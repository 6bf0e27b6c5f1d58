/** Tries that get no answer: a look-up or a receiver that hangs, and a service that closes. Cites `docs/contract/automation.md#webhooks`. */
import type { lookup } from 'node:dns';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/kernel/clock.js';
import { limits } from '../../src/kernel/limits.js';
import { createSender } from '../../src/webhooks/send.js';
import { tcpPeers } from '../support/tcp-peers.js';
import { startReceiver } from '../support/webhook-receiver.js';

const { fullServer } = tcpPeers();
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

test('a receiver that hangs has failed after the time of a try, which is ten seconds', async () => {
  expect(limits.webhooks.tryMs).toBe(10_000);
  const receiver = await startReceiver();
  receiver.answer = () => undefined;
  const sender = createSender({ mayDial: () => true, clock: systemClock, tryMs: 300 });
  const answer = await sender.send({ ...message, url: receiver.url }, new AbortController().signal);
  expect(answer).toEqual({ status: null, error: 'no answer within 0.3 s', retryAfterMs: null });
  expect(receiver.received).toHaveLength(1);
  sender.close();
  await receiver.close();
});

test('a receiver whose interim answers never end has failed at once', async () => {
  const server = createServer((_request, response) => {
    const more = setInterval(() => response.writeEarlyHints({ link: '</a>; rel=preload' }), 1);
    response.on('close', () => clearInterval(more));
    response.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const sender = createSender({ mayDial: () => true, clock: systemClock });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const answer = await sender.send({ ...message, url }, new AbortController().signal);
  expect(answer).toEqual({ status: null, error: 'too many interim answers came', retryAfterMs: null });
  sender.close();
  server.close();
});

test('an address that takes longer than 250 ms is reached, although the next one refuses', async () => {
  const { port, open } = await fullServer();
  const addresses = ['127.0.0.1', '127.0.0.2'].map((address) => ({ address, family: 4 }));
  const found = ((_host: string, _options: object, done: (error: null, all: object[]) => void) =>
    done(null, addresses)) as unknown as typeof lookup;
  const sender = createSender({ mayDial: () => true, clock: systemClock, lookup: found, tryMs: 60_000 });
  const sent = sender.send({ ...message, url: `http://receiver.example:${port}/` }, new AbortController().signal);
  await sleep(500);
  open();
  // It echoes, which is no answer of HTTP.
  expect((await sent).error).toBe('the answer is not HTTP');
  sender.close();
});

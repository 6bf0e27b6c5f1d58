/** `docs/contract/automation.md#webhooks`, `url`: what may be dialled, and what is dialled. */
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { describe, expect, test, vi } from 'vitest';
import { addressJudge } from '../../src/webhooks/addresses.js';
import { createSender, type SenderDeps } from '../../src/webhooks/send.js';
import { createCertificate } from '../support/certificate.js';
import { startReceiver } from '../support/webhook-receiver.js';

const addresses = (text: string): readonly string[] => text.trim().split(/\s+/);

describe('an address', () => {
  const mayDial = addressJudge([]);
  test.each(
    addresses(`
      8.8.8.8 1.1.1.1 172.32.0.1 100.63.255.255 192.0.1.1 198.20.0.1 223.255.255.255 2606:4700::1 2a00::1
      ::ffff:8.8.8.8 64:ff9b::8.8.8.8 2002:808:808::1
    `),
  )('%s is public', (address) => expect(mayDial(address)).toBe(true));

  test.each([
    ...addresses(`
      0.0.0.0 10.1.2.3 100.64.0.1 127.0.0.1 127.255.255.254 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.8
      192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1
      239.255.255.255 240.0.0.1 255.255.255.255 :: ::1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::7f00:1 ::127.0.0.1
      64:ff9b::10.0.0.1 64:ff9b:1::1 100::1 2001::1 2001:db8::1 2002:7f00:1::1 2002:a00:1::1 3fff::1 5f00::1
      fc00::1 fd12::1 fe80::1 fe80::1%eth0 fec0::1 ff02::1 a.example
    `),
    '',
  ])('%s is not', (address) => expect(mayDial(address)).toBe(false));

  test('that SVC_WEBHOOK_ALLOW has may be dialled, in IPv6 as well', () => {
    const allowed = addressJudge(['10.1.0.0/16', 'fd00::/8', '192.168.7.7']);
    for (const address of ['10.1.2.3', '::ffff:10.1.2.3', '64:ff9b::10.1.2.3', 'fd12::1', '192.168.7.7', '8.8.8.8'])
      expect([address, allowed(address)]).toEqual([address, true]);
    for (const address of ['10.2.0.1', 'fc12::1', '192.168.7.8', '127.0.0.1'])
      expect([address, allowed(address)]).toEqual([address, false]);
  });

  test('as a range of IPv6 allows no IPv4 address', () => {
    const allowed = addressJudge(['::/0']);
    expect(allowed('fd12::1')).toBe(true);
    for (const address of ['127.0.0.1', '::ffff:127.0.0.1', '10.0.0.1'])
      expect([address, allowed(address)]).toEqual([address, false]);
  });
});

const lookUps: string[] = [];
const resolving = (...addresses: readonly string[]): SenderDeps['lookup'] =>
  ((host: string, _options: object, callback: (error: null, found: object[]) => void) => {
    lookUps.push(host);
    callback(
      null,
      addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    );
  }) as unknown as SenderDeps['lookup'];
const send = async (url: string, allow: readonly string[], lookup: SenderDeps['lookup']) => {
  const sender = createSender({ mayDial: addressJudge(allow), clock: { now: () => 0 }, lookup });
  try {
    return await sender.send({ url, headers: {}, body: '{}' }, new AbortController().signal);
  } finally {
    sender.close();
  }
};

describe('a name', () => {
  test('is dialled at the address that was judged, with one look-up, and asked for by its name', async () => {
    const receiver = await startReceiver();
    const { port } = new URL(receiver.url);
    lookUps.length = 0;
    const answer = await send(`http://hooks.example:${port}/x`, ['127.0.0.0/8'], resolving('127.0.0.1'));
    expect(answer).toEqual({ status: 204, error: null, retryAfterMs: null });
    expect(lookUps).toEqual(['hooks.example']);
    expect(receiver.received[0]?.headers.host).toBe(`hooks.example:${port}`);
    await receiver.close();
  });

  test.each([
    ['leads to an address that is not public', ['127.0.0.1']],
    ['leads to one public address and one that is not', ['8.8.8.8', '::ffff:10.0.0.1']],
  ])('that %s is not dialled', async (_, addresses) => {
    const receiver = await startReceiver();
    const { port } = new URL(receiver.url);
    const answer = await send(`http://hooks.example:${port}/x`, [], resolving(...addresses));
    expect(answer.status).toBeNull();
    expect(answer.error).toMatch(/not a public address/);
    expect(receiver.received).toEqual([]);
    await receiver.close();
  });

  test('a proxy of the environment is ignored', async () => {
    const [receiver, proxy] = [await startReceiver(), await startReceiver()];
    for (const name of ['http_proxy', 'HTTP_PROXY']) vi.stubEnv(name, proxy.url);
    vi.stubEnv('NODE_USE_ENV_PROXY', '1');
    try {
      expect((await send(receiver.url, ['127.0.0.1/32'], undefined)).status).toBe(204);
    } finally {
      vi.unstubAllEnvs();
    }
    expect([receiver.received.length, proxy.received.length]).toEqual([1, 0]);
    await Promise.all([receiver.close(), proxy.close()]);
  });
});

test('a TLS receiver is asked for by its name, and believed only with a certificate of that name', async () => {
  const { cert, key } = createCertificate();
  const asked: string[] = [];
  const server = createServer({ cert, key, SNICallback: (name, done) => done(null, void asked.push(name) as never) });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const answer = await send(`https://hooks.example:${port}/`, ['127.0.0.1'], resolving('127.0.0.1'));
  expect(answer).toEqual({
    status: null,
    error: 'the connection failed: DEPTH_ZERO_SELF_SIGNED_CERT',
    retryAfterMs: null,
  });
  expect(asked).toEqual(['hooks.example']);
  await new Promise((resolve) => server.close(resolve));
});

/** `docs/contract/automation.md#webhooks`, over REST with receivers on 127.0.0.1. */
import type { ServerResponse } from 'node:http';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { Webhook } from 'standardwebhooks';
import { ServiceError } from '../../src/kernel/errors.js';
import { streams } from '../../src/kernel/event.js';
import { eventually } from '../support/eventually.js';
import { startRest, type JsonData, type RestFixture } from '../support/rest-fixture.js';
import { startReceiver, status, type Receiver } from '../support/webhook-receiver.js';

let rest: RestFixture;
let receiver: Receiver;
let number = 0;
beforeAll(async () => {
  rest = await startRest({ webhookAllow: ['127.0.0.0/8'] });
});
afterAll(() => rest.close());
beforeEach(async () => {
  receiver = await startReceiver();
});
afterEach(async () => {
  const { items } = await rest.data('GET', '/api/webhooks?page_size=500');
  await Promise.all(items.map(({ id }: JsonData) => rest.data('DELETE', `/api/webhooks/${id}`)));
  await receiver.close();
});

/** A webhook for commands about upstreams alone, so nothing else that a test does reaches it. */
const make = (fields: object = {}): Promise<JsonData> =>
  rest.data('POST', '/api/webhooks', {
    body: {
      name: `hook ${(number += 1)}`,
      url: receiver.url,
      types: ['command'],
      filters: { resource_type: ['l4_upstream'] },
      ...fields,
    },
  });
const get = (id: string): Promise<JsonData> => rest.data('GET', `/api/webhooks/${id}`);
const upstream = (): Promise<JsonData> =>
  rest.data('POST', '/api/l4-upstreams', { body: { name: `u ${(number += 1)}`, endpoint: 'a.example:80' } });
const names = (): readonly string[] =>
  receiver.received.map(({ json }) => (json.data as JsonData)?.resource.name ?? json.type);
async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  await eventually(holds).toBe(true);
}

describe('a webhook', () => {
  test('gets the items behind its own creation, in order, as the feed has them, signed', async () => {
    await upstream();
    const { id, secret, state, last_delivery } = await make();
    expect([state, last_delivery]).toEqual(['ok', null]);
    const made = [await upstream(), await upstream(), await upstream()];
    await until(() => receiver.received.length === 3);
    expect(names()).toEqual(made.map(({ name }) => name));
    const { items } = await rest.data('GET', '/api/events?after=start&resource_type=l4_upstream&page_size=500');
    expect(receiver.received.map(({ json }) => json)).toEqual(
      items.slice(-3).map(({ cursor, type, at, data }: JsonData) => ({ type, at, cursor, data })),
    );
    for (const { headers, body } of receiver.received) {
      expect(new Webhook(secret).verify(body, headers as Record<string, string>)).toEqual(JSON.parse(body));
      expect(headers['webhook-id']).toBe(JSON.parse(body).cursor);
    }
    // The receiver has an item before its delivery is noted.
    const newest = async (): Promise<unknown> => (await get(id)).last_delivery?.message_id;
    await until(async () => (await newest()) === items.at(-1).cursor);
    const shown = await get(id);
    expect(shown.last_delivery).toMatchObject({ type: 'command', status: 204, attempt: 1, error: null });
    expect(shown.last_delivery.message_id).toBe(items.at(-1).cursor);
  });

  test('shows its secret once, and the audit shows scheme and host of its URL', async () => {
    const url = `${receiver.url}/secret-path?token=secret-query`;
    const { id, secret } = await make({ url });
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(await get(id)).not.toHaveProperty('secret');
    await rest.data('PUT', `/api/webhooks/${id}`, { body: { url: `${receiver.url}/other-path`, rotate_secret: true } });
    const entries = await rest.data('GET', `/api/audit?resource_id=${id}`);
    const text = JSON.stringify(entries);
    expect(entries.items.map(({ action }: JsonData) => action)).toEqual(['webhook.update', 'webhook.create']);
    for (const word of ['secret-path', 'secret-query', 'other-path', secret, '"ct"']) expect(text).not.toContain(word);
    expect(text).toContain(new URL(url).host);
    for (const role of ['operator', 'viewer'] as const) {
      expect((await rest.data('GET', `/api/audit?resource_id=${id}`, { role })).total).toBe(0);
      const [{ id: entry }] = entries.items;
      const reverted = await rest.call('POST', `/api/audit/${entry}/revert`, { role });
      expect(reverted.statusCode).toBe(role === 'operator' ? 404 : 403);
    }
  });

  test('whose URL stands in the way of a revert is refused with scheme and host, in the log too', async () => {
    const { id } = await make({ url: `${receiver.url}/first-path` });
    for (const url of [`${receiver.url}/second-path`, `${receiver.url}/third-path`])
      await rest.data('PUT', `/api/webhooks/${id}`, { body: { url } });
    const [, entry] = (await rest.data('GET', `/api/audit?resource_id=${id}`)).items;
    const refused = await rest.call('POST', `/api/audit/${entry.id}/revert`);
    expect([refused.statusCode, refused.json().error]).toEqual([
      409,
      expect.stringContaining('url: is now "http://127'),
    ]);
    expect([refused.body, ...rest.logged].join()).not.toMatch(/(first|second|third)-path/);
  });

  test('signs with two secrets after a rotation, and of three the oldest stops at once', async () => {
    const { id, secret } = await make();
    const rotate = async (): Promise<string> =>
      (await rest.data('PUT', `/api/webhooks/${id}`, { body: { rotate_secret: true } })).secret;
    const valid = async (): Promise<readonly boolean[]> => {
      const before = receiver.received.length;
      await upstream();
      await until(() => receiver.received.length === before + 1);
      const { body, headers } = receiver.received.at(-1)!;
      return secrets.map((one) => {
        try {
          return new Webhook(one).verify(body, headers as Record<string, string>) !== undefined;
        } catch {
          return false;
        }
      });
    };
    const secrets = [secret, await rotate()];
    expect(await valid()).toEqual([true, true]);
    secrets.push(await rotate());
    expect(await valid()).toEqual([false, true, true]);
    const { items } = await rest.data('GET', `/api/audit?resource_id=${id}&action=webhook.update`);
    expect(items[0].not_revertible_because).toMatch(/secret/);
  });

  test('that fails is tried again, keeps the order, and says so', async () => {
    receiver.answer = status(500);
    const { id } = await make();
    const first = await upstream();
    await upstream();
    await until(async () => (await get(id)).state === 'failing');
    const failing = await get(id);
    expect(failing.last_delivery).toMatchObject({ status: 500, attempt: 1 });
    expect(failing.lag.caught_up).toBe(false);
    receiver.answer = status(200);
    const resumed = await rest.data('POST', `/api/webhooks/${id}/resume`);
    expect(resumed.id).toBe(id);
    await until(() => receiver.received.length === 3);
    expect(names()).toEqual([first.name, first.name, names()[2]]);
    await until(async () => (await get(id)).state === 'ok');
  });

  test('goes on behind the failed item with skip, and a changed url is tried at once', async () => {
    receiver.answer = status(500);
    const { id } = await make();
    const [first, second] = [await upstream(), await upstream()];
    await until(async () => (await get(id)).state === 'failing');
    await rest.data('POST', `/api/webhooks/${id}/resume`, { body: { skip: true } });
    await until(() => receiver.received.length === 2);
    expect(names()).toEqual([first.name, second.name]);
    const other = await startReceiver();
    await rest.data('PUT', `/api/webhooks/${id}`, { body: { url: other.url } });
    await until(() => other.received.length === 1);
    await other.close();
  });

  test('whose filters leave out what failed is ok, and tries what comes next as often as any other', async () => {
    receiver.answer = status(500);
    const { id } = await make();
    const left = await upstream();
    await until(async () => (await get(id)).state === 'failing');
    await rest.data('PUT', `/api/webhooks/${id}`, { body: { filters: { resource_type: ['node'] } } });
    await until(async () => (await get(id)).state === 'ok');
    const body = { name: `n ${(number += 1)}` };
    await rest.data('POST', '/api/nodes', { body });
    await until(async () => (await get(id)).state === 'failing');
    expect((await get(id)).last_delivery).toMatchObject({ attempt: 1 });
    receiver.answer = status(200);
    await rest.data('PUT', `/api/webhooks/${id}`, { body: { filters: { resource_type: ['l4_upstream', 'node'] } } });
    await rest.data('POST', `/api/webhooks/${id}/resume`);
    const last = await upstream();
    await until(() => names().at(-1) === last.name);
    expect(names()).toEqual([left.name, body.name, body.name, last.name]);
  });

  test('is stopped by a 410 at once, by the system; resume tries the failed item first', async () => {
    receiver.answer = status(410);
    const { id } = await make();
    const { name } = await upstream();
    await until(async () => (await get(id)).state === 'stopped');
    await upstream();
    const { items } = await rest.data('GET', `/api/audit?resource_id=${id}&action=webhook.stop`);
    expect(items).toMatchObject([{ actor: { type: 'system' }, revertible: false }]);
    expect(receiver.received).toHaveLength(1);
    receiver.answer = status(200);
    await rest.data('POST', `/api/webhooks/${id}/resume`, { body: {} });
    await until(() => receiver.received.length === 3);
    expect(names().slice(0, 2)).toEqual([name, name]);
    const again = await rest.call('POST', `/api/webhooks/${id}/resume`, { body: {} });
    expect([again.statusCode, (await get(id)).state]).toEqual([409, 'ok']);
  });

  test('whose place cannot be read is late in the metrics', async () => {
    const { eventStore } = rest.stores;
    const read = eventStore.read.bind(eventStore);
    const broken = vi.spyOn(eventStore, 'read').mockImplementation((stream, ...options) => {
      if (stream === streams.webhooks) throw new ServiceError('unavailable', 'no reader may read this');
      return read(stream, ...options);
    });
    try {
      await until(() => rest.webhookLagSeconds() === 0);
      await make();
      await until(() => rest.webhookLagSeconds() > 1);
    } finally {
      broken.mockRestore();
    }
  });

  test('starts again from the start of the log, or behind a cursor', async () => {
    const { id, cursor } = await make();
    await upstream();
    await until(() => receiver.received.length === 1);
    await rest.data('POST', `/api/webhooks/${id}/resume`, { body: { after: cursor } });
    await until(() => receiver.received.length === 2);
    expect(receiver.received[1]?.body).toBe(receiver.received[0]?.body);
    await rest.data('POST', `/api/webhooks/${id}/resume`, { body: { after: 'start' } });
    const { total } = await rest.data('GET', '/api/audit?resource_type=l4_upstream&page_size=1');
    await until(() => receiver.received.length === 2 + total);
    const refused = async (body: object): Promise<number> =>
      (await rest.call('POST', `/api/webhooks/${id}/resume`, { body })).statusCode;
    expect(await refused({ after: 'nowhere' })).toBe(400);
    expect(await refused({ after: 'now', skip: true })).toBe(400);
    expect(await refused({ skip: true })).toBe(409);
  });

  test('that stops, or is deleted, before the first item of the log goes on from the start', async () => {
    await upstream();
    const { id } = await make();
    receiver.answer = status(410);
    await rest.data('POST', `/api/webhooks/${id}/resume`, { body: { after: 'start' } });
    await until(async () => (await get(id)).state === 'stopped');
    const { items } = await rest.data('GET', `/api/audit?resource_id=${id}&page_size=1`);
    expect(items[0].action).toBe('webhook.stop');
    await rest.data('POST', `/api/webhooks/${id}/resume`);
    await until(async () => (await get(id)).state === 'stopped');
    await until(() => receiver.received.length === 2);
    expect(names()[1]).toBe(names()[0]);
    await rest.data('DELETE', `/api/webhooks/${id}`);
    const deleted = await rest.data('GET', `/api/audit?resource_id=${id}&page_size=1`);
    await rest.data('POST', `/api/audit/${deleted.items[0].id}/revert`);
    await until(() => receiver.received.length === 3);
    expect(names()[2]).toBe(names()[0]);
  });

  test('that is disabled gets nothing, and goes on where it was', async () => {
    const { id } = await make({ enabled: false });
    const { name } = await upstream();
    expect((await get(id)).state).toBe('disabled');
    expect((await rest.call('POST', `/api/webhooks/${id}/resume`, { body: { after: 'now' } })).statusCode).toBe(409);
    const ping = await rest.data('POST', `/api/webhooks/${id}/ping`);
    expect(ping).toMatchObject({ type: 'ping', cursor: null, status: 204, attempt: 1, error: null });
    expect(receiver.received).toMatchObject([{ json: { type: 'ping' }, headers: { 'webhook-id': ping.message_id } }]);
    expect(ping.message_id).toMatch(/^ping_[0-9a-f-]{36}$/);
    expect((await get(id)).state).toBe('disabled');
    await rest.data('PUT', `/api/webhooks/${id}`, { body: { enabled: true } });
    await until(() => receiver.received.length === 2);
    expect(names()[1] ?? '').toBe(name);
    const delivered = async (): Promise<unknown> => {
      const { items } = await rest.data('GET', `/api/webhooks/${id}/deliveries`);
      return items.map(({ type }: JsonData) => type);
    };
    await eventually(delivered).toEqual(['command', 'ping']);
  });

  test('comes back with the revert of its delete, with its secret, and goes on where it was', async () => {
    const { id, secret } = await make();
    await rest.data('DELETE', `/api/webhooks/${id}`);
    const { name } = await upstream();
    const { items } = await rest.data('GET', `/api/audit?resource_id=${id}&action=webhook.delete`);
    await rest.data('POST', `/api/audit/${items[0].id}/revert`);
    await until(() => receiver.received.length === 1);
    expect(names()).toEqual([name]);
    const { body, headers } = receiver.received[0]!;
    expect(new Webhook(secret).verify(body, headers as Record<string, string>)).toBeDefined();
  });
});

describe('a receiver', () => {
  test.each([
    [
      'redirects',
      status(302, { location: 'http://127.0.0.1:9/' }),
      { status: 302, error: /redirects are not followed/ },
    ],
    ['asks to wait', status(429, { 'retry-after': '3600' }), { status: 429, error: /429/ }],
    [
      'says no HTTP',
      (response: ServerResponse) => {
        response.socket?.end('nonsense\r\n\r\n');
      },
      { status: null, error: /not HTTP/ },
    ],
    [
      'hangs up',
      (response: ServerResponse) => {
        response.socket?.destroy();
      },
      { status: null, error: /ECONNRESET/ },
    ],
  ] as const)('that %s has failed', async (_, answer, expected) => {
    receiver.answer = answer;
    const { id } = await make();
    await upstream();
    await until(async () => (await get(id)).state === 'failing');
    const { last_delivery } = await get(id);
    expect(last_delivery.status).toBe(expected.status);
    expect(last_delivery.error).toMatch(expected.error);
  });

  test('whose answer has no end is read to 64 KiB, and has taken the item', async () => {
    let written = 0;
    receiver.answer = (response) => {
      response.writeHead(200);
      const timer = setInterval(() => {
        written += 16_384;
        response.write(Buffer.alloc(16_384, 'secret answer'));
      }, 1);
      response.on('close', () => clearInterval(timer));
    };
    const { id } = await make();
    await upstream();
    await until(async () => (await get(id)).last_delivery?.status === 200);
    expect(JSON.stringify(await rest.data('GET', `/api/webhooks/${id}/deliveries`))).not.toContain('secret answer');
    expect(written).toBeLessThan(16 * 1024 * 1024);
  });
});

describe('a URL', () => {
  const post = async (url: string): Promise<readonly [number, string | null]> => {
    const answer: JsonData = await rest.call('POST', '/api/webhooks', { body: { name: `hook ${(number += 1)}`, url } });
    return [answer.statusCode, answer.json().error];
  };

  test.each([
    'ftp://a.example/',
    'a.example',
    'https://user:word@a.example/',
    'http://10.0.0.1/',
    'http://[::1]/',
    'http://2130706434.0/',
    'http://0xa9.254.1.1/',
    'https://[::ffff:192.168.0.1]/',
  ])('%s is a 400 that names the field', async (url) => {
    const [code, error] = await post(url);
    expect([url, code]).toEqual([url, 400]);
    expect(error).toMatch(/^invalid_request: url: /);
  });

  test.each(['https://a.example', 'http://127.0.0.1:9/x', 'http://localhost:9/', 'https://[2606:4700::1]:8443/x?y=z'])(
    '%s is taken as it is',
    async (url) => {
      expect(await post(url)).toEqual([201, null]);
      const { items } = await rest.data('GET', '/api/webhooks');
      expect(items.some((webhook: JsonData) => webhook.url === url)).toBe(true);
    },
  );
});

test('there are at most 64', async () => {
  const body = { url: 'http://127.0.0.1:9/', enabled: false };
  const answers = await Promise.all(
    Array.from({ length: 65 }, (_, index) =>
      rest.call('POST', '/api/webhooks', { body: { ...body, name: `many ${index}` } }),
    ),
  );
  const refused = answers.filter(({ statusCode }) => statusCode !== 201);
  expect(refused.map(({ statusCode, body: text }) => [statusCode, JSON.parse(text).error])).toEqual([
    [409, expect.stringContaining('64 webhooks')],
  ]);
});

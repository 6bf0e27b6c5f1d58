/**
 * Webhooks of two instances on the EventStoreDB and FerretDB test servers: the instance that delivers is killed, closes or loses its
 * lease, and the read store is away or emptied. Cites `docs/contract/automation.md#webhooks`.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MongoClient } from 'mongodb';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../../scripts/stack/process.js';
import { createRestClient, type RestClient } from '../../scripts/stack/rest-client.js';
import { prepareService, type ServiceProcess } from '../../scripts/stack/service.js';
import { streams } from '../../src/kernel/event.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { ownEvent } from '../../src/storage/broken-log.js';
import { newestEvent, type EventStore } from '../../src/storage/event-store.js';
import { openEventStoreDb } from '../../src/storage/eventstoredb/open.js';
import { startEventStoreDb, type EventStoreDbServer } from '../servers/eventstoredb/server.js';
import { ferretDbBuilt, startFerretDb, type FerretDb } from '../servers/ferretdb-process.js';
import { startReceiver, status, type Receiver } from '../support/webhook-receiver.js';

interface Webhook {
  readonly id: string;
  readonly state: string;
  readonly cursor: string;
}

const patienceMs = 60_000;

describe.skipIf(!ferretDbBuilt())('a webhook of two instances', () => {
  let folder: string;
  let log: EventStoreDbServer;
  let mongo: FerretDb;
  let stores: MongoClient;
  let events: EventStore;
  let receiver: Receiver;
  let hook: Webhook;
  const services: ServiceProcess[] = [];
  const clients: RestClient[] = [];

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-webhooks-'));
    [log, mongo, receiver] = await Promise.all([startEventStoreDb(), startFerretDb(), startReceiver()]);
    const database = `${mongo.url.replace(/\/$/, '')}/svc`;
    stores = new MongoClient(database);
    events = openEventStoreDb({ url: log.url, logger: silentLogger });
    const env = {
      SVC_EVENTSTORE_URL: log.url,
      SVC_MONGODB_URL: database,
      SVC_MASTER_KEY: Buffer.alloc(32, 5).toString('base64'),
      SVC_WEBHOOK_ALLOW: '127.0.0.0/8',
    };
    for (const name of ['a', 'b']) services.push(await prepareService({ dataDir: join(folder, name), env }));
    await Promise.all(services.map((service) => service.start()));
    const admin = await services[0]!.admin();
    const login = { username: 'admin', password: services[0]!.adminPassword };
    const { token } = await admin.call<{ token: string }>('POST', '/api/auth/login', login);
    for (const { url } of services) clients.push(createRestClient(url, token));
    hook = await clients[0]!.call('POST', '/api/webhooks', {
      name: 'upstreams',
      url: receiver.url,
      types: ['command'],
      filters: { resource_type: ['l4_upstream'] },
    });
  }, 120_000);

  afterAll(async () => {
    await Promise.all(services.map((service) => service.stop()));
    await stores?.close();
    await events?.close();
    await receiver?.close();
    await mongo?.close();
    await log?.close();
    await rm(folder, { recursive: true, force: true });
  });

  const made: string[] = [];
  /** Creates upstreams on an instance that lives. */
  async function upstreams(count: number, on = 0): Promise<void> {
    for (let left = count; left > 0; left -= 1) {
      const name = `item-${made.length + 1}`;
      await clients[on]!.call('POST', '/api/l4-upstreams', { name, endpoint: '192.0.2.1:80' });
      made.push(name);
    }
  }

  const names = (): readonly string[] =>
    receiver.received.map(({ json }) => (json.data as { resource: { name: string } }).resource.name);
  const has = (name: string | undefined): Promise<true> =>
    eventually(`${name} is delivered`, async () => names().includes(name ?? '') || undefined, patienceMs);

  /** The items that came again: the newest ones, in order. None is missing. */
  function repeated(from: number): readonly string[] {
    const [before, ...places] = names()
      .slice(from - 1)
      .map((name) => made.indexOf(name));
    let [last, newest] = [before!, before!];
    const again: string[] = [];
    for (const place of places) {
      expect(place).toBeLessThanOrEqual(last + 1);
      if (place <= newest) again.push(made[place]!);
      [last, newest] = [place, Math.max(newest, place)];
    }
    expect(last).toBe(made.length - 1);
    return again;
  }

  /** What may come again: it is behind the newest fact. */
  async function behindFact(): Promise<readonly string[]> {
    const newest = await eventually('a fact', () => newestEvent(events, streams.webhooks), 90_000);
    const { cursor } = ownEvent(newest).data as { readonly cursor: string };
    const query = `after=${cursor}&types=command&resource_type=l4_upstream`;
    const { items } = await clients[0]!.call<{ items: { data: { resource: { name: string } } }[] }>(
      'GET',
      `/api/events?${query}`,
    );
    return items.map(({ data }) => data.resource.name);
  }

  /** The instance that delivers. */
  const holder = (): Promise<number> =>
    eventually(
      'an instance delivers',
      async () => {
        const held = await Promise.all(
          services.map(async ({ url }) => {
            const text = await fetch(`${url}/metrics`)
              .then((answer) => answer.text())
              .catch(() => '');
            return /^svc_webhooks\{state="(ok|failing)"\} 1$/m.test(text);
          }),
        );
        return held.includes(true) ? held.indexOf(true) : undefined;
      },
      patienceMs,
    );

  test('whose instance is killed between answer and cursor comes from the other one, or from the same one once it is back: nothing is missed, and what comes twice is what came since the newest fact', async () => {
    await upstreams(2);
    await has('item-2');
    for (const back of ['later', 'at once'] as const) {
      const from = names().length;
      const mayComeAgain = [
        ...(await behindFact()),
        ...Array.from({ length: 3 }, (_, more) => `item-${made.length + 1 + more}`),
      ];
      const killed = await holder();
      let kill: Promise<void> | undefined;
      receiver.answer = (response) => {
        status(204)(response);
        if (names().length === from + 3) response.on('finish', () => (kill ??= services[killed]!.kill()));
      };
      await upstreams(6, 1 - killed);
      await eventually('the kill', async () => kill !== undefined || undefined, patienceMs);
      await kill;
      if (back === 'at once') await services[killed]!.start();
      await has(made.at(-1));
      if (back === 'later') await services[killed]!.start();
      expect(mayComeAgain).toEqual(expect.arrayContaining([...repeated(from)]));
    }
  }, 180_000);

  test('whose instance closes while an item is on its way goes on from the other, and nothing comes twice', async () => {
    const from = names().length;
    const closing = await holder();
    let stopped: Promise<void> | undefined;
    receiver.answer = (response) => {
      stopped ??= services[closing]!.stop();
      setTimeout(() => status(204)(response), 500);
    };
    await upstreams(3, 1 - closing);
    await has(made.at(-1));
    await stopped;
    receiver.answer = status(204);
    expect(repeated(from)).toEqual([]);
    await services[closing]!.start();
  }, 120_000);

  test('is shown while the read store answers nothing, and afterwards nothing is missing', async () => {
    const from = names().length;
    // Each instance shows what it has shown last.
    for (const client of clients) await client.call('GET', `/api/webhooks/${hook.id}`);
    await mongo.freeze();
    try {
      await upstreams(2);
      for (const client of clients) {
        const shown = await client.send('GET', `/api/webhooks/${hook.id}`);
        expect(shown).toMatchObject({ status: 200, body: { data: { id: hook.id, state: 'ok' } } });
        expect(shown.body.data?.['cursor']).toEqual(expect.any(String));
        expect((await client.send('GET', '/api/webhooks')).status).toBe(200);
        expect((await client.send('GET', `/api/webhooks/${hook.id}/deliveries`)).status).toBe(503);
      }
    } finally {
      mongo.thaw();
    }
    await upstreams(1);
    await has(made.at(-1));
    repeated(from);
  }, 120_000);

  test('goes on from the log when the read store was emptied, while the service runs or before it starts', async () => {
    const database = stores.db();
    await upstreams(1);
    await has(made.at(-1));
    /** The instance that delivers knows its place from memory, so it is killed; the other one does not know it. */
    async function emptyWhileItRuns(): Promise<void> {
      const all = (await database.listCollections().toArray()).map(({ name }) => name);
      for (const name of all.filter((one) => one.startsWith('webhook_'))) await database.dropCollection(name);
      const killed = await holder();
      await services[killed]!.kill();
      await eventually('the other takes over', async () => (await holder()) !== killed || undefined, patienceMs);
      await services[killed]!.start();
    }
    async function emptyBeforeItStarts(): Promise<void> {
      await Promise.all(services.map((service) => service.stop()));
      await database.dropDatabase();
      await Promise.all(services.map((service) => service.start()));
    }
    for (const empty of [emptyWhileItRuns, emptyBeforeItStarts]) {
      const [from, mayComeAgain] = [names().length, await behindFact()];
      await empty();
      await upstreams(1);
      await has(made.at(-1));
      const came = names().slice(from);
      expect([...mayComeAgain, made.at(-1)]).toContain(came[0]);
      expect(came).toEqual(made.slice(made.indexOf(came[0]!)));
    }
  }, 240_000);
});

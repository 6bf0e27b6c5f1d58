/**
 * The event feed of two instances on the EventStoreDB and FerretDB test servers: readers that go from one to the other while
 * instances are killed, a read store that is away, and a token that ends on the other instance.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { eventually } from '../../scripts/stack/process.js';
import { createRestClient, type RestClient } from '../../scripts/stack/rest-client.js';
import { prepareService, type ServiceProcess } from '../../scripts/stack/service.js';
import { startEventStoreDb, type EventStoreDbServer } from '../servers/eventstoredb/server.js';
import { ferretDbBuilt, startFerretDb, type FerretDb } from '../servers/ferretdb-process.js';
import { openEventStream } from '../support/event-stream.js';

const credentials = { username: 'admin', password: 'a password for the demo only' };
const login = async (url: string): Promise<string> =>
  (await createRestClient(url).call<{ token: string }>('POST', '/api/auth/login', credentials)).token;

interface Page {
  readonly items: readonly { readonly cursor: string; readonly data: { readonly id: string } }[];
  readonly cursor: string;
  readonly caught_up: boolean;
}

describe.skipIf(!ferretDbBuilt())('the event feed on two instances', () => {
  let folder: string;
  let log: EventStoreDbServer;
  let mongo: FerretDb;
  let token: string;
  const services: ServiceProcess[] = [];
  const urls = (): readonly string[] => services.map(({ url }) => url);

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-feed-'));
    [log, mongo] = await Promise.all([startEventStoreDb(), startFerretDb()]);
    const env = {
      SVC_EVENTSTORE_URL: log.url,
      SVC_MONGODB_URL: `${mongo.url.replace(/\/$/, '')}/svc`,
      SVC_MASTER_KEY: Buffer.alloc(32, 5).toString('base64'),
    };
    for (const name of ['a', 'b']) services.push(await prepareService({ dataDir: join(folder, name), env }));
    await Promise.all(services.map((service) => service.start()));
    token = await login(services[0]!.url);
  }, 120_000);

  afterAll(async () => {
    await Promise.all(services.map((service) => service.stop()));
    await mongo?.close();
    await log?.close();
    await rm(folder, { recursive: true, force: true });
  });

  async function pages(url: string, after: string): Promise<Page['items']> {
    const client = createRestClient(url, token);
    const items: Page['items'][number][] = [];
    for (let from = after; ;) {
      const page = await client.call<Page>('GET', `/api/events?after=${from}&types=command&page_size=7`);
      items.push(...page.items);
      if (page.caught_up) return items;
      from = page.cursor;
    }
  }

  /** Reads on from the two instances in turn, ten events from each; passes over an instance that is down. */
  async function roam(begin: number, from: string, seen: string[], signal: AbortSignal): Promise<void> {
    let cursor = from;
    for (let turn = begin; !signal.aborted; turn += 1) {
      let count = 0;
      let done = (): void => undefined;
      const left = new Promise<void>((resolve) => (done = resolve));
      const stream = await openEventStream(urls()[turn % 2]!, {
        token,
        query: '?types=command',
        lastEventId: cursor,
        onEvent({ id, type, data }) {
          if (count === 10 || id === undefined) return;
          cursor = id;
          if (type !== 'command') return;
          seen.push(data.id);
          count += 1;
          if (count === 10) done();
        },
      }).catch(() => undefined);
      if (stream === undefined) {
        await delay(50);
        continue;
      }
      await Promise.race([left, ended(stream.ended, signal)]);
      stream.close();
    }
  }

  async function ended(isEnded: () => boolean, signal: AbortSignal): Promise<void> {
    while (!isEnded() && !signal.aborted) await delay(20);
  }

  test('readers that change instance at every tenth event, through kills, miss nothing and see nothing twice', async () => {
    const { cursor } = await createRestClient(services[0]!.url, token).call<Page>('GET', '/api/events');
    const stop = new AbortController();
    const readers = Array.from({ length: 6 }, (): string[] => []);
    const reading = readers.map((seen, index) => roam(index, cursor, seen, stop.signal));
    let number = 0;
    const clients: readonly RestClient[] = urls().map((url) => createRestClient(url, token));
    const write = async (index: number, until: () => boolean): Promise<void> => {
      while (!until()) {
        number += 1;
        const body = { name: `roam-${number}`, endpoint: '192.0.2.1:80' };
        // A call to an instance that is not there, or that dies meanwhile, is not repeated: what is in the log counts.
        await clients[index]!.send('POST', '/api/l4-upstreams', body).catch(() => undefined);
        await delay(100);
      }
    };
    let writing = true;
    onTestFinished(() => {
      writing = false;
      stop.abort();
    });
    const writers = [0, 1, 0, 1].map((index) => write(index, () => !writing));
    for (const index of [0, 1]) {
      await delay(500 + Math.random() * 1000);
      await services[index]!.kill();
      await services[index]!.start();
    }
    writing = false;
    await Promise.all(writers);
    const all = (await pages(services[1]!.url, cursor)).map(({ data }) => data.id);
    expect(all.length).toBeGreaterThan(50);
    expect(new Set(all).size).toBe(all.length);
    for (const seen of readers) {
      await eventually(
        'a reader has seen everything',
        async () => (seen.length >= all.length ? true : undefined),
        30_000,
      );
    }
    stop.abort();
    await Promise.all(reading);
    for (const seen of readers) expect(seen).toEqual(all);
    expect((await pages(services[0]!.url, cursor)).map(({ data }) => data.id)).toEqual(all);
  }, 180_000);

  test('while the read store answers nothing a stream stays, and afterwards nothing is missing', async () => {
    const client = createRestClient(services[0]!.url, token);
    const { id } = await client.call<{ id: string }>('POST', '/api/l4-upstreams', {
      name: 'quiet',
      endpoint: 'a.example:80',
    });
    // Since its start, the other instance has not come across this name.
    await services[1]!.kill();
    await services[1]!.start();
    const stream = await openEventStream(services[1]!.url, { token, query: '?types=command' });
    await stream.next(({ type }) => type === 'ready', 'ready');
    await mongo.freeze();
    try {
      await client.call('PUT', `/api/l4-upstreams/${id}`, { enabled: false });
      await stream.next(({ comment }) => comment === 'heartbeat', 'a heartbeat');
    } finally {
      mongo.thaw();
    }
    const told = await stream.next(({ type }) => type === 'command', 'the edit');
    expect(told.data).toMatchObject({ action: 'l4_upstream.update', resource: { id, name: 'quiet' } });
    expect(stream.ended()).toBe(false);
    stream.close();
  }, 120_000);

  test('a stream of one instance ends when its token is signed out on the other', async () => {
    const own = await login(services[1]!.url);
    const stream = await openEventStream(services[0]!.url, { token: own });
    await stream.next(({ type }) => type === 'ready', 'ready');
    await createRestClient(services[1]!.url, own).call('POST', '/api/auth/logout');
    expect((await stream.next(({ type }) => type === 'end', 'its end')).data).toMatchObject({ reason: 'token_ended' });
  });

  test('an API token that one instance has made is taken by the other at once, and neither takes it once it is deleted', async () => {
    const [a, b] = services.map(({ url }) => url) as [string, string];
    for (let round = 0; round < 5; round += 1) {
      const made = await createRestClient(a, token).call<{ id: string; token: string }>('POST', '/api/auth/tokens', {
        name: `round ${round}`,
        role: 'viewer',
      });
      const me = async (url: string): Promise<number> =>
        (await createRestClient(url, made.token).send('GET', '/api/auth/me')).status;
      expect(await me(b)).toBe(200);
      const stream = await openEventStream(a, { token: made.token });
      await stream.next(({ type }) => type === 'ready', 'ready');
      await createRestClient(b, token).call('DELETE', `/api/auth/tokens/${made.id}`);
      expect([await me(a), await me(b)]).toEqual([401, 401]);
      expect((await stream.next(({ type }) => type === 'end', 'its end')).data).toMatchObject({
        reason: 'token_ended',
      });
    }
  });
});

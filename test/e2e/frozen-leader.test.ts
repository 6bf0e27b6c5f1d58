/**
 * The leader of three EventStoreDB nodes freezes while the real service writes, and comes back when another one leads.
 * What was asked of it and given up is then sent, cut, and answered late. The service lives, and loses nothing.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Answer, RestClient } from '../../scripts/stack/rest-client.js';
import { prepareService, type ServiceProcess } from '../../scripts/stack/service.js';
import { startCluster, type EventStoreDbCluster } from '../servers/eventstoredb/cluster.js';
import { eventually } from '../support/eventually.js';

let folder: string;
let cluster: EventStoreDbCluster;
let service: ServiceProcess;
let admin: RestClient;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-frozen-'));
  cluster = await startCluster(3, { freezable: true });
  service = await prepareService({
    dataDir: folder,
    env: {
      SVC_READ_STORE: 'embedded',
      SVC_EVENTSTORE_URL: cluster.url,
      SVC_MASTER_KEY: Buffer.alloc(32, 5).toString('base64'),
    },
  });
  await service.start();
  admin = await service.admin();
});
afterEach(async () => {
  await service.stop();
  await cluster.close();
  await rm(folder, { recursive: true });
});

/** Whatever is still under way to a server in this process arrives long before this gives up. */
async function arrived(fits: () => boolean): Promise<void> {
  for (let look = 0; look < 100 && !fits(); look += 1) await delay(10);
}

test('a late answer of an append that was given up does not end the service', { timeout: 90_000 }, async () => {
  const acknowledged: string[] = [];
  let counter = 0;
  const write = async (): Promise<Answer> => {
    const name = `u-${(counter += 1)}`;
    const answer = await admin.send('POST', '/api/l4-upstreams', { name, endpoint: '127.0.0.1:80' });
    if (answer.status === 201) acknowledged.push(name);
    return answer;
  };
  expect((await write()).status).toBe(201);
  const [, second, leader] = cluster.nodes;

  leader!.freeze();
  // Appends are given up, and the clients after the first one wait for the frozen node too: no other leads yet.
  const waiting = Array.from({ length: 4 }, write);
  await eventually(() => service.program().output().split('for appends is discarded').length).toBeGreaterThan(2);
  cluster.lead(1);
  // The new leader has an append in flight when the frozen one comes back, gets an old one, and drops its connections.
  second!.faults.choose = () => ({ kind: 'held' });
  await eventually(() => second!.held()).toBeGreaterThan(0);
  leader!.faults.choose = () => ({ kind: 'cut', written: false });
  const asked = leader!.appends();
  leader!.thaw();
  await arrived(() => leader!.appends() > asked);
  await cluster.rejoin(2);
  second!.faults.choose = undefined;
  second!.release();
  await Promise.allSettled(waiting);
  const written = (): Promise<number | string> =>
    write().then(
      ({ status }) => status,
      () => (service.program().exited() ? `ended: ${service.program().output().slice(-2_000)}` : 'no answer'),
    );
  await eventually(written).toBe(201);
  const { items } = await admin.call<{ items: { name: string }[] }>('GET', '/api/l4-upstreams?page_size=100');
  const names = items.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(acknowledged));
  expect(new Set(names).size).toBe(names.length);
});

/**
 * The leader of three EventStoreDB nodes is cut off from the others while the real service still reaches it. It calls
 * itself the leader for 3 s, then none, and another leads 12 s after the cut, as measured on real ones. The service says
 * that nothing can be written, loses nothing, and goes on with the new leader by itself.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import type { RestClient } from '../../scripts/stack/rest-client.js';
import { prepareService, type ServiceProcess } from '../../scripts/stack/service.js';
import { startCluster, type EventStoreDbCluster } from '../servers/eventstoredb/cluster.js';
import { eventually } from '../support/eventually.js';

let folder: string;
let cluster: EventStoreDbCluster;
let service: ServiceProcess;
let admin: RestClient;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-cut-off-'));
  cluster = await startCluster(3);
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

/** Why the service is not ready; empty when it is. */
async function reasons(): Promise<string[]> {
  const answer = await fetch(`${service.url}/readyz`);
  const { reasons: told } = (await answer.json()) as { reasons: string[] };
  expect(answer.status).toBe(told.length === 0 ? 200 : 503);
  return told;
}
async function metric(name: string): Promise<number> {
  const text = await (await fetch(`${service.url}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1]);
}

/** Creates upstreams until the returned function is called, which gives the names of the acknowledged ones. */
function write(callers: number): () => Promise<string[]> {
  const acknowledged: string[] = [];
  let over = false;
  onTestFinished(() => void (over = true));
  const writing = Array.from({ length: callers }, async (_, caller) => {
    for (let count = 0; !over; count += 1) {
      const name = `u-${caller}-${count}`;
      const body = { name, endpoint: '127.0.0.1:80' };
      const status = await admin.send('POST', '/api/l4-upstreams', body).then(
        (answer) => answer.status,
        () => 0,
      );
      if (status === 201) acknowledged.push(name);
      else await delay(20);
    }
  });
  return async () => {
    over = true;
    await Promise.all(writing);
    return acknowledged;
  };
}
async function names(): Promise<string[]> {
  const found: string[] = [];
  for (let page = 1; ; page += 1) {
    const path = `/api/l4-upstreams?page=${page}&page_size=500`;
    const { items, total } = await admin.call<{ items: { name: string }[]; total: number }>('GET', path);
    found.push(...items.map(({ name }) => name));
    if (found.length >= total) return found;
  }
}

test(
  'a service that reaches the old leader alone says so, and goes on with the new one',
  { timeout: 90_000 },
  async () => {
    const end = write(4);
    const [, second, third] = cluster.nodes;
    await eventually(() => third!.appends()).toBeGreaterThan(10);
    cluster.cutOff(2);
    const before = third!.appends();
    await eventually(() => third!.appends()).toBeGreaterThan(before);
    cluster.standDown(2);
    await eventually(reasons).toContain('the event store is out of reach');
    cluster.lead(1);
    await eventually(reasons).toEqual([]);
    await eventually(() => second!.appends()).toBeGreaterThan(10);
    await cluster.rejoin(2);
    const acknowledged = await end();

    const found = await names();
    expect(found).toEqual(expect.arrayContaining(acknowledged));
    expect(new Set(found).size).toBe(found.length);
  },
);

test(
  'a service that loses its node with two appends under way lives, while no node leads',
  { timeout: 90_000 },
  async () => {
    const leader = cluster.nodes[2]!;
    const end = write(1);
    await eventually(() => leader.appends()).toBeGreaterThan(3);
    for (const { faults } of cluster.nodes) faults.noNodes = true;
    // The first refusal makes the client look for another node; the second comes while it does.
    let refused = 0;
    leader.faults.choose = () => ({ kind: 'not_ready', ms: (refused += 1) % 2 === 0 ? 0 : 300 });
    await eventually(() => metric('svc_survived_exceptions_total')).toBeGreaterThan(0);
    for (const { faults } of cluster.nodes) faults.noNodes = false;
    leader.faults.choose = undefined;
    await eventually(reasons).toEqual([]);
    const acknowledged = await end();
    expect(await names()).toEqual(expect.arrayContaining(acknowledged));
  },
);

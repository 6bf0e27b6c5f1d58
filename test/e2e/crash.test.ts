/**
 * Kills the real service with kill -9 under load: after each restart every acknowledged command is there, no command is
 * there in part, and no generation is lower. SVC_TEST_KILLS sets how often it is killed. `chaos.test.ts` kills instances on
 * EventStoreDB and MongoDB.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../../scripts/stack/process.js';
import type { RestClient } from '../../scripts/stack/rest-client.js';
import { prepareService, type ServiceProcess } from '../../scripts/stack/service.js';

interface Item {
  readonly id: string;
  readonly name: string;
  readonly version: number;
}
interface NodeItem extends Item {
  readonly psk_fingerprint: string | null;
  readonly generation: number;
  readonly labels: Readonly<Record<string, string>>;
}
interface UpstreamItem extends Item {
  readonly endpoint: string;
}

async function listAll<T>(admin: RestClient, path: string): Promise<T[]> {
  const items: T[] = [];
  for (let page = 1; ; page += 1) {
    const answer = await admin.call<{ items: T[]; total: number }>('GET', `${path}?page=${page}&page_size=500`);
    items.push(...answer.items);
    if (items.length >= answer.total) return items;
  }
}

describe('kill -9 under load', () => {
  const kills = Number(process.env['SVC_TEST_KILLS'] ?? 4);
  const callers = 8;
  let folder: string;
  let service: ServiceProcess;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-crash-'));
    service = await prepareService({ dataDir: folder, env: { SVC_LOG_LEVEL: 'warn' } });
  });

  afterAll(async () => {
    await service.stop();
    await rm(folder, { recursive: true, force: true });
  });

  test(`loses no acknowledged command in ${kills} kills`, async () => {
    // What was acknowledged: upstream name → endpoint, node ids, and the version of the node that every caller edits.
    const upstreams = new Map<string, string>();
    const nodes = new Set<string>();
    const generations = new Map<string, number>();
    let counter = 0;
    let editedVersion = 0;
    let attempted = 0;
    let acknowledged = 0;

    async function load(admin: RestClient, edited: string, running: () => boolean): Promise<void> {
      while (running()) {
        const n = (counter += 1);
        attempted += 1;
        const name = `u-${n}`;
        const endpoint = `127.0.0.1:${1000 + (n % 60_000)}`;
        const created = await admin.call<Item>('POST', '/api/l4-upstreams', { name, endpoint });
        upstreams.set(name, endpoint);
        acknowledged += 1;
        if (n % 3 === 0) {
          const moved = `127.0.0.2:${1000 + (n % 60_000)}`;
          await admin.call('PUT', `/api/l4-upstreams/${created.id}`, { endpoint: moved });
          upstreams.set(name, moved);
        }
        if (n % 4 === 0) {
          const node = await admin.call<NodeItem>('POST', '/api/nodes', { name: `n-${n}` });
          nodes.add(node.id);
          generations.set(node.id, node.generation);
        }
        if (n % 5 === 0) {
          const node = await admin.call<NodeItem>('PUT', `/api/nodes/${edited}`, { labels: { step: String(n) } });
          editedVersion = Math.max(editedVersion, node.version);
        }
      }
    }
    let edited: string | undefined;

    for (let round = 0; round < kills; round += 1) {
      await service.start();
      const admin = await service.admin();
      edited ??= (await admin.call<NodeItem>('POST', '/api/nodes', { name: 'edited', labels: { step: '0' } })).id;
      const target = edited;

      const upstreamsNow = new Map(
        (await listAll<UpstreamItem>(admin, '/api/l4-upstreams')).map((item) => [item.name, item]),
      );
      for (const [name, endpoint] of upstreams) {
        // An edit without an answer may have been written, but never in part.
        const port = endpoint.split(':')[1];
        expect([endpoint, `127.0.0.2:${port}`], `${name} after kill ${round}`).toContain(
          upstreamsNow.get(name)?.endpoint,
        );
      }
      const nodesNow = await listAll<NodeItem>(admin, '/api/nodes');
      const byId = new Map(nodesNow.map((node) => [node.id, node]));
      for (const id of nodes) expect(byId.has(id), `node ${id} after kill ${round}`).toBe(true);
      // Creating a node writes two events, created and PSK issued: never one without the other.
      for (const node of nodesNow) expect(node.psk_fingerprint, `the PSK of ${node.name}`).not.toBeNull();
      for (const node of nodesNow) {
        expect(node.generation).toBeGreaterThanOrEqual(generations.get(node.id) ?? 0);
        generations.set(node.id, node.generation);
      }
      // Each event raises the node's version: a lost edit would lower it.
      expect(byId.get(target)?.version).toBeGreaterThanOrEqual(editedVersion);

      let running = true;
      const loads = Array.from({ length: callers }, () =>
        load(admin, target, () => running).catch(() => undefined /* the kill cuts whoever is waiting */),
      );
      const enough = acknowledged + callers * (1 + Math.random() * 6);
      await eventually(
        'enough commands are acknowledged',
        async () => (acknowledged >= enough ? true : undefined),
        30_000,
        5,
      );
      await service.kill();
      running = false;
      await Promise.all(loads);
    }

    await service.start();
    const admin = await service.admin();
    const all = await listAll<UpstreamItem>(admin, '/api/l4-upstreams');
    expect(new Set(all.map((item) => item.name)).size).toBe(all.length);
    expect(all.length).toBeGreaterThanOrEqual(upstreams.size);
    expect(all.length).toBeLessThanOrEqual(attempted);
    expect(upstreams.size, 'commands were acknowledged in every round').toBeGreaterThan(kills);
  }, 240_000);
});

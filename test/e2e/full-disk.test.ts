/**
 * A full disk under the running service: commands answer 503, reads continue, the instance is not ready, it recovers by
 * itself when there is space, and no acknowledged command is lost. The kernel itself refuses the writes: `prlimit` bounds
 * the size of the process's files.
 */
import { execFileSync } from 'node:child_process';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../../scripts/stack/process.js';
import type { RestClient } from '../../scripts/stack/rest-client.js';
import { prepareService, type ServiceProcess } from '../../scripts/stack/service.js';

function canLimit(): boolean {
  try {
    execFileSync('prlimit', ['--version'], { stdio: 'ignore', timeout: 60_000 });
    return true;
  } catch {
    process.stderr.write('SKIPPED: prlimit is not on this machine, so the full-disk test of the service did not run\n');
    return false;
  }
}

let folder: string;
let service: ServiceProcess;
let admin: RestClient;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-disk-'));
  service = await prepareService({ dataDir: folder });
  await service.start();
  admin = await service.admin();
});

afterAll(async () => {
  await service.stop();
  await rm(folder, { recursive: true, force: true });
});

const limit = (size: number | 'unlimited'): void => {
  execFileSync('prlimit', ['--pid', String(service.program().pid), `--fsize=${size}:unlimited`], { timeout: 60_000 });
};

test.skipIf(!canLimit())(
  'with a full disk the service answers commands with 503, loses no acknowledged one, and recovers without a restart',
  async () => {
    const acknowledged: string[] = [];
    const create = async (name: string): Promise<number> => {
      const answer = await admin.send('POST', '/api/l4-upstreams', { name, endpoint: '127.0.0.1:80' });
      if (answer.status === 201) acknowledged.push(name);
      else expect(answer.body.error).toMatch(/^unavailable: /);
      return answer.status;
    };
    for (let index = 0; index < 20; index += 1) expect(await create(`before-${index}`)).toBe(201);

    const sizes = await Promise.all(['log', 'read'].map((store) => stat(join(folder, store, 'data.mdb'))));
    limit(Math.min(...sizes.map(({ size }) => size)));
    let tried = 0;
    // This takes a while: the log has space in reserve, and each answer waits for read models that cannot be written.
    await eventually(
      'commands are refused because the disk is full',
      async () => {
        const statuses = await Promise.all(Array.from({ length: 64 }, () => create(`full-${(tried += 1)}`)));
        return statuses.includes(503) ? true : undefined;
      },
      90_000,
      1,
    );
    // Reads continue, and the probes report the problem.
    expect((await admin.send('GET', '/api/l4-upstreams')).status).toBe(200);
    await eventually('the instance is not ready', async () =>
      (await fetch(`${service.url}/readyz`)).status === 503 ? true : undefined,
    );
    expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
    await eventually('the probe says which disk is full', async () => {
      const { reasons } = (await (await fetch(`${service.url}/readyz`)).json()) as { reasons: string[] };
      return reasons.includes('the disk of the event store is full') ? true : undefined;
    });
    const refused = await admin.send('POST', '/api/l4-upstreams', { name: 'refused', endpoint: '127.0.0.1:80' });
    expect(refused.body.error).toContain('the disk of the event store is full');

    limit('unlimited');
    await eventually(
      'commands are taken again',
      async () => {
        tried += 1;
        return (await create(`after-${tried}`)) === 201 ? true : undefined;
      },
      60_000,
    );
    await eventually('the instance is ready again', async () =>
      (await fetch(`${service.url}/readyz`)).status === 200 ? true : undefined,
    );

    const names = async (): Promise<string[]> => {
      const all: string[] = [];
      for (let page = 1; ; page += 1) {
        const path = `/api/l4-upstreams?page_size=500&page=${page}`;
        const { items, total } = await admin.call<{ items: { name: string }[]; total: number }>('GET', path);
        all.push(...items.map((item) => item.name));
        if (all.length >= total) return all;
      }
    };
    // Some commands were acknowledged with `x-projection-lag`: they appear soon.
    await eventually('everything acknowledged is shown', async () => {
      const visible = new Set(await names());
      return acknowledged.every((name) => visible.has(name)) ? true : undefined;
    });
    await service.kill();
    await service.start();
    admin = await service.admin();
    expect(await names()).toEqual(expect.arrayContaining(acknowledged));
  },
  180_000,
);

/**
 * The failure drills of `docs/operations.md` in which the log stays what it is: an installation moves between embedded
 * and external stores, or loses its read models. Generations stay, nothing is pushed, and the answers are the same.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { MongoClient } from 'mongodb';
import { describe, expect, test } from 'vitest';
import { runScript } from '../support/programs.js';
import { someHeartbeats } from '../support/restore-drill.js';
import { startSmallSite } from '../support/small-site.js';
import type { SmallSite } from '../support/small-site.js';
import { externalStores, externalStoresBuilt } from '../support/store-pairs.js';

type Env = Readonly<Record<string, string>>;

async function command(name: string, args: readonly string[], env: Env): Promise<string> {
  const { code, out, err } = await runScript(name, args, env);
  expect([name, code, err]).toEqual([name, 0, err]);
  return out;
}

/** Snapshots that the service has offered since its start. */
async function offered({ service }: SmallSite): Promise<number> {
  const text = await (await fetch(`${service.url}/metrics`)).text();
  return Number(/^svc_delivery_offered_total (\d+)$/m.exec(text)?.[1]);
}

/** What the agents are running, as they and the service tell it. */
async function running(site: SmallSite): Promise<unknown> {
  const nodes = await site.converged();
  return {
    nodes: nodes.map(({ id, generation, applied_generation }) => [id, generation, applied_generation]),
    applied: [site.applied('a'), site.applied('b')],
    through: await site.through(),
  };
}

/** Every answer that comes from read models; what agents told last and who signed in meanwhile left out. */
async function answers(site: SmallSite): Promise<unknown> {
  const admin = site.admin();
  const items = async (path: string): Promise<readonly Record<string, unknown>[]> =>
    (await admin.call<{ items: readonly Record<string, unknown>[] }>('GET', path)).items;
  const nodes = (await items('/api/nodes?sort=name')).map(
    ({ id, name, generation, applied_generation, apply, version, created_at, updated_at, psk_fingerprint }) => {
      return { id, name, generation, applied_generation, apply, version, created_at, updated_at, psk_fingerprint };
    },
  );
  const chains = await items('/api/l4-chains');
  return {
    nodes,
    chains,
    upstreams: await items('/api/l4-upstreams'),
    deployments: await items(`/api/l4-chains/${String(chains[0]?.['id'])}/deployments`),
    audit: (await items('/api/audit?page_size=500')).filter(({ action }) => action !== 'session.sign_in'),
    settings: await admin.call('GET', '/api/settings/connectivity'),
    config: await Promise.all(nodes.map(({ id }) => admin.call('GET', `/api/nodes/${String(id)}/config`))),
  };
}

describe.skipIf(!externalStoresBuilt('moved and lost stores'))('under agents that stay as they are', () => {
  test('an installation moves to external stores and back: the same generations, nothing pushed', async () => {
    const pair = await externalStores.open();
    let site: SmallSite | undefined;
    try {
      site = await startSmallSite({});
      const { folder, service } = site;
      const [from, back] = [join(folder, 'data'), join(folder, 'back')];
      await site.pointAt('second');
      const [before, told] = [await running(site), await answers(site)];
      const unmoved = async (moved: SmallSite): Promise<void> => {
        expect(await running(moved)).toEqual(before);
        await someHeartbeats();
        expect(await running(moved)).toEqual(before);
        expect(await offered(moved)).toBe(0);
        expect(await answers(moved)).toEqual(told);
      };

      await service.stop();
      const there = join(folder, 'there.jsonl');
      await command('log-export', [there], { SVC_DATA_DIR: from });
      const SVC_MASTER_KEY = (await readFile(join(from, 'master.key'), 'utf8')).trim();
      const env = { ...pair.env, SVC_MASTER_KEY };
      await command('log-import', [there], { ...env, SVC_DATA_DIR: from });
      await site.start({ dataDir: join(folder, 'elsewhere'), env });
      await unmoved(site);

      await service.stop();
      const andBack = join(folder, 'back.jsonl');
      await command('log-export', [andBack], { ...env, SVC_DATA_DIR: from });
      await command('log-import', [andBack], { SVC_DATA_DIR: back });
      await site.start({ dataDir: back, env: { SVC_MASTER_KEY } });
      await unmoved(site);
      await site.pointAt('third');
    } finally {
      await site?.close();
      await pair.close();
    }
  }, 150_000);

  test('read models that are lost come again from the log: at a start, or by a rebuild when the checkpoint is left', async () => {
    const pair = await externalStores.open();
    const client = new MongoClient(pair.env['SVC_MONGODB_URL']!);
    let site: SmallSite | undefined;
    try {
      site = await startSmallSite(pair.env);
      const db = client.db();
      await site.pointAt('second');
      const [before, told] = [await running(site), await answers(site)];
      const drop = async (which: (collection: string) => boolean): Promise<number> => {
        const names = (await db.listCollections().toArray()).map(({ name }) => name).filter(which);
        for (const name of names) await db.dropCollection(name);
        return names.length;
      };
      const env = { ...pair.env, SVC_DATA_DIR: site.folder };

      // Everything but the data keys, and the claims that keep a command from being delivered twice.
      await site.service.stop();
      expect(await drop((name) => !/^(data_keys|command_claims)__/.test(name))).toBeGreaterThan(5);
      await site.start();
      expect(await running(site)).toEqual(before);
      expect(await answers(site)).toEqual(told);
      expect(await offered(site)).toBe(0);

      // The documents only: the checkpoint says that they are there.
      await site.service.stop();
      expect(await drop((name) => /^(nodes|upstreams|chains|deployments|resource_names|audit)__/.test(name))).toBe(6);
      const checked = await runScript('projections-rebuild', ['--check'], env);
      expect(checked).toMatchObject({ code: 1, out: expect.stringMatching(/^DIFFERENT: /) });
      await command('projections-rebuild', [], env);
      await site.start();
      expect(await running(site)).toEqual(before);
      expect(await answers(site)).toEqual(told);
      expect(await offered(site)).toBe(0);
      await site.pointAt('third');
      expect(await command('projections-rebuild', ['--check'], env)).toMatch(/: 0 different\./);
    } finally {
      await site?.close();
      await client.close();
      await pair.close();
    }
  }, 150_000);
});

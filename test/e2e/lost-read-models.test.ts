/**
 * Failure drill of `docs/how-to/restore.md#read-store-lost`: generations stay, nothing is pushed, and
 * the answers are the same.
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { MongoClient } from 'mongodb';
import { describe, expect, test } from 'vitest';
import { runMaintenance } from '../support/programs.js';
import { startSmallSite, type SmallSite } from '../support/small-site.js';
import { externalStores, externalStoresBuilt } from '../support/store-pairs.js';
import { answers, command, offered, running } from '../support/what-stays.js';

test('a deleted folder of the read store is filled again by the next start, and everything is there and serves', async () => {
  const site = await startSmallSite({});
  try {
    await site.pointAt('second');
    const [before, answersBefore] = [await running(site), await answers(site)];
    await site.service.stop();
    await rm(join(site.folder, 'data', 'read'), { recursive: true });
    await site.start();
    expect(await running(site)).toEqual(before);
    expect(await answers(site)).toEqual(answersBefore);
    await site.pointAt('third');
  } finally {
    await site.close();
  }
});

describe.skipIf(!externalStoresBuilt())('lost read models', () => {
  test('are computed again from the log: at a start, or by a rebuild if the checkpoint is still there', async () => {
    const pair = await externalStores.open();
    const client = new MongoClient(pair.env['SVC_MONGODB_URL']!);
    let site: SmallSite | undefined;
    try {
      site = await startSmallSite(pair.env);
      const db = client.db();
      await site.pointAt('second');
      const [before, answersBefore] = [await running(site), await answers(site)];
      const drop = async (which: (collection: string) => boolean): Promise<number> => {
        const names = (await db.listCollections().toArray()).map(({ name }) => name).filter(which);
        for (const name of names) await db.dropCollection(name);
        return names.length;
      };
      const env = { ...pair.env, SVC_DATA_DIR: site.folder };

      // Everything.
      await site.service.stop();
      expect(await drop(() => true)).toBeGreaterThan(5);
      await site.start();
      expect(await running(site)).toEqual(before);
      expect(await answers(site)).toEqual(answersBefore);
      expect(await offered(site)).toBe(0);

      // Only the documents: the checkpoint still says that they are there.
      await site.service.stop();
      expect(await drop((name) => /^(deployments|resource_names|audit)__/.test(name))).toBe(3);
      const checked = await runMaintenance('projections:rebuild', ['--check'], env);
      expect(checked).toMatchObject({ code: 1, out: expect.stringMatching(/^DIFFERENT: /) });
      await command('projections:rebuild', [], env);
      await site.start();
      expect(await running(site)).toEqual(before);
      expect(await answers(site)).toEqual(answersBefore);
      expect(await offered(site)).toBe(0);
      await site.pointAt('third');
      expect(await command('projections:rebuild', ['--check'], env)).toMatch(/: 0 different\./);
    } finally {
      await site?.close();
      await client.close();
      await pair.close();
    }
  }, 150_000);
});

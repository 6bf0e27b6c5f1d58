/**
 * Failure drill of `docs/how-to/move.md`, with agents that keep running:
 * generations stay, nothing is pushed, and the answers are the same.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { someHeartbeats } from '../support/restore-drill.js';
import { startSmallSite, type SmallSite } from '../support/small-site.js';
import { externalStores, externalStoresBuilt } from '../support/store-pairs.js';
import { answers, command, offered, running } from '../support/what-stays.js';

describe.skipIf(!externalStoresBuilt())('a move between stores', () => {
  test('to external stores and back keeps all generations and pushes nothing', async () => {
    const pair = await externalStores.open();
    let site: SmallSite | undefined;
    try {
      site = await startSmallSite({});
      const { folder, service } = site;
      const [from, back] = [join(folder, 'data'), join(folder, 'back')];
      await site.pointAt('second');
      const [before, answersBefore] = [await running(site), await answers(site)];
      const unmoved = async (moved: SmallSite): Promise<void> => {
        expect(await running(moved)).toEqual(before);
        await someHeartbeats(moved);
        expect(await running(moved)).toEqual(before);
        expect(await offered(moved)).toBe(0);
        expect(await answers(moved)).toEqual(answersBefore);
      };

      await service.stop();
      const there = join(folder, 'there.jsonl');
      await command('log:export', [there], { SVC_DATA_DIR: from });
      const SVC_MASTER_KEY = (await readFile(join(from, 'master.key'), 'utf8')).trim();
      const env = { ...pair.env, SVC_MASTER_KEY };
      await command('log:import', [there], { ...env, SVC_DATA_DIR: from });
      await site.start({ dataDir: join(folder, 'elsewhere'), env });
      await unmoved(site);

      await service.stop();
      const andBack = join(folder, 'back.jsonl');
      await command('log:export', [andBack], { ...env, SVC_DATA_DIR: from });
      await command('log:import', [andBack], { SVC_DATA_DIR: back, SVC_MASTER_KEY });
      await site.start({ dataDir: back, env: { SVC_MASTER_KEY } });
      await unmoved(site);
      await site.pointAt('third');
    } finally {
      await site?.close();
      await pair.close();
    }
  }, 150_000);
});

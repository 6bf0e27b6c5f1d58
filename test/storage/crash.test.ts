/**
 * A process killed during appends loses no acknowledged append and leaves no half append. SVC_TEST_KILLS sets how often
 * it is killed.
 */
import { expect, it } from 'vitest';
import { systemClock } from '../../src/kernel/clock.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { openEmbedded } from '../../src/storage/embedded/open-embedded.js';
import { eventually } from '../support/eventually.js';
import { readAll } from './contract/appending.js';
import { temporaryFolder } from './contract/temporary-folder.js';
import { startChild } from './children/start-child.js';

const kills = Number(process.env['SVC_TEST_KILLS'] ?? 6);

it(`keeps every acknowledged append whole through ${kills} kills under load`, async () => {
  const folder = await temporaryFolder();
  const acknowledged = new Map<string, { stream: string; revision: number; position: number }>();
  let newestDocument = 0;
  try {
    for (let kill = 0; kill < kills; kill += 1) {
      const child = startChild('storage/children/appender', [folder.path]);
      await child.line((line) => line === 'open');
      await eventually(() => child.lines.length).toBeGreaterThan(30 + (kill % 10) * 60);
      await child.stop('SIGKILL');
      for (const line of child.lines) {
        const [stream = '', revision, position, id] = line.split(' ');
        if (stream === 'document') newestDocument = Math.max(newestDocument, Number(revision));
        // The kill may have cut the last line.
        else if (id?.length === 36) {
          acknowledged.set(id, { stream, revision: Number(revision), position: Number(position) });
        }
      }
      const stores = await openEmbedded({ dataDir: folder.path, clock: systemClock, logger: silentLogger });
      const stored = new Map<string, number>();
      let events = 0;
      for (let index = 0; index < 8; index += 1) {
        const all = await readAll(stores.eventStore, `svc-${index}`);
        expect(all.map(({ revision }) => revision)).toEqual(all.map((_, revision) => revision));
        events += all.length;
        for (const event of all) {
          const { id, count } = event.metadata.command;
          stored.set(id, (stored.get(id) ?? 0) + 1);
          const receipt = acknowledged.get(id);
          if (receipt !== undefined && receipt.revision === event.revision)
            expect(event.position).toBe(receipt.position);
          expect(count).toBeLessThan(10);
        }
        const whole = all.filter(({ metadata }) => metadata.command.index === 0);
        for (const { metadata } of whole) expect(stored.get(metadata.command.id)).toBe(metadata.command.count);
      }
      expect(await stores.eventStore.headPosition()).toBe(events);
      for (const id of acknowledged.keys()) expect(stored.has(id)).toBe(true);
      const documents = await stores.readStore.collection({
        name: 'seen',
        version: 1,
        index: { group: 'all', order: 'n' },
      });
      const [newest] = await documents.find({ groups: ['all'], direction: 'desc', limit: 1 });
      expect(newest?.position ?? 0).toBeGreaterThanOrEqual(newestDocument);
      const listed = (await documents.list(undefined, 1_000)).length;
      expect(await documents.count({ groups: ['all'] })).toBe(listed);
      expect(await documents.count({ groups: ['all'], from: '0' })).toBe(listed);
      await stores.close();
    }
    expect(acknowledged.size).toBeGreaterThan(100);
    expect(newestDocument).toBeGreaterThan(10);
  } finally {
    await folder.remove();
  }
}, 120_000);

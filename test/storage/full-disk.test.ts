/**
 * Writes that really fail: the maximum file size of a running process is lowered and raised again from outside, so that
 * the kernel refuses its writes as with a full disk.
 */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { systemClock } from '../../src/kernel/clock.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { openEmbedded } from '../../src/storage/embedded/open-embedded.js';
import { canRun } from '../support/can-run.js';
import { readAll } from './contract/appending.js';
import { temporaryFolder } from './contract/temporary-folder.js';
import { startChild } from './children/start-child.js';

const canLimit = canRun('prlimit', '--version');

const limitFiles = (pid: number, size: number | 'unlimited'): void => {
  execFileSync('prlimit', ['--pid', String(pid), `--fsize=${size}:unlimited`], { timeout: 20_000 });
};

it.skipIf(!canLimit)(
  'refuses writes while the disk is full, keeps reading, recovers by itself, and loses nothing',
  async () => {
    const folder = await temporaryFolder();
    try {
      const child = startChild('storage/children/full-disk', [folder.path]);
      const pid = child.process.pid!;
      await child.line((line) => line.startsWith('ping done'));
      for (let round = 0; round < 3; round += 1) {
        const sizes = await Promise.all(['log', 'read'].map((store) => stat(join(folder.path, store, 'data.mdb'))));
        limitFiles(pid, Math.min(...sizes.map(({ size }) => size)));
        const failed = child.lines.length;
        const since = (fits: (line: string) => boolean) => (line: string) =>
          fits(line) && child.lines.lastIndexOf(line) >= failed;
        await child.line(since((line) => line.startsWith('unavailable ') || line.startsWith('unknown ')));
        await child.line(since((line) => line.startsWith('document unavailable')));
        await child.line(since((line) => line === 'ping unavailable unavailable'));
        await child.line(since((line) => line.startsWith('read ')));
        limitFiles(pid, 'unlimited');
        const healed = child.lines.length;
        const later = (fits: (line: string) => boolean) => (line: string) =>
          fits(line) && child.lines.lastIndexOf(line) >= healed;
        await child.line(later((line) => line.startsWith('appended ')));
        await child.line(later((line) => line.startsWith('document done')));
        await child.line(later((line) => line === 'ping done done'));
      }
      await child.stop('SIGKILL');
      expect(child.lines.filter((line) => line.startsWith('unhandled'))).toEqual([]);
      // The library must never see the full disk, because its own handling crashes the process.
      expect(child.errors()).not.toMatch(/write error|mdb_|input\/output/i);

      const stores = await openEmbedded({ dataDir: folder.path, clock: systemClock, logger: silentLogger });
      const stored = new Map<string, number>();
      for (let index = 0; index < 4; index += 1) {
        for (const { metadata } of await readAll(stores.eventStore, `svc-${index}`)) {
          stored.set(metadata.command.id, (stored.get(metadata.command.id) ?? 0) + 1);
        }
      }
      const documents = await stores.readStore.collection({
        name: 'seen',
        version: 1,
        index: { group: 'names', order: 'n' },
      });
      let lost = 0;
      for (const line of child.lines) {
        const [outcome, id = '', n] = line.split(' ');
        if (outcome === 'appended') expect(stored.get(id)).toBe(3);
        if (outcome === 'unavailable') expect(stored.has(id)).toBe(false);
        if (outcome === 'unavailable') lost += 1;
        if (outcome === 'document' && id === 'done') expect(await documents.get(`id-${n}`)).toBeDefined();
      }
      expect(lost).toBeGreaterThan(0);
      for (const count of stored.values()) expect(count).toBe(3);
      await stores.close();
    } finally {
      await folder.remove();
    }
  },
  60_000,
);

it.skipIf(!canLimit)('a start on a full disk says in one sentence which disk it is', async () => {
  const folder = await temporaryFolder();
  try {
    const child = startChild('storage/children/full-disk', [folder.path], ['prlimit', '--fsize=8192']);
    await once(child.process, 'close');
    expect(child.errors()).toContain(`The disk of the data folder ${folder.path} is full: make room and start again.`);
  } finally {
    await folder.remove();
  }
});

/**
 * Two processes on one data folder: the second is refused, also from another network namespace (another container on the
 * same volume). Where the lock fails all the same, a process whose folder was taken over writes nothing more, so that no
 * acknowledged append is lost.
 */
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { prepareService } from '../../scripts/stack/service.js';
import { systemClock } from '../../src/kernel/clock.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { openEmbedded, type EmbeddedStores } from '../../src/storage/embedded/open-embedded.js';
import { startChild, type Child } from './children/start-child.js';
import { readAll } from './contract/appending.js';
import { inNewNamespaces } from '../support/namespaces.js';
import { temporaryFolder } from './contract/temporary-folder.js';

const ofContainer = inNewNamespaces('-n', '-p', '-f', '--mount-proc', '--kill-child') ?? inNewNamespaces('-n');

describe('a data folder that another process uses', () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  let dataDir: string;
  const children: Child[] = [];
  const start = (script: string, args: readonly string[], before?: readonly string[]): Child => {
    const child = startChild(script, args, before);
    children.push(child);
    return child;
  };
  const open = (): Promise<EmbeddedStores> => openEmbedded({ dataDir, clock: systemClock, logger: silentLogger });
  beforeEach(async () => {
    folder = await temporaryFolder();
    dataDir = join(folder.path, 'data');
  });
  afterEach(async () => {
    for (const child of children.splice(0)) await child.stop('SIGKILL');
    await folder.remove();
  });

  it.skipIf(ofContainer === undefined)(
    'is refused from another container, until the process in it dies',
    async () => {
      const child = start('storage/children/appender', [dataDir], ofContainer);
      // By then its garbage was collected more than once.
      await child.line((line) => line === 'document 60');
      await expect(open()).rejects.toThrow(
        /in use by another process \(process \d+ on .+, appender.js, since \d{4}-.+Z\)/,
      );
      // Both have the same process id, each in its namespace.
      const second = start('storage/children/appender', [dataDir], ofContainer);
      await expect(second.line((line) => line === 'open')).rejects.toThrow(
        /in use by another process \(process \d+ on /,
      );
      await child.stop('SIGKILL');
      // The process in the namespace ends after the one that was killed.
      const stores = await vi.waitFor(open, { timeout: 10_000, interval: 20 });
      const third = start('storage/children/appender', [dataDir], ofContainer);
      await expect(third.line((line) => line === 'open')).rejects.toThrow(
        /in use by another process \(process \d+ on /,
      );
      await stores.close();
    },
    60_000,
  );

  it('is refused although its path is longer than any socket address', async () => {
    dataDir = join(folder.path, 'x'.repeat(100), 'y'.repeat(100));
    const child = start('storage/children/appender', [dataDir]);
    await child.line((line) => line === 'open');
    await expect(open()).rejects.toThrow(/in use by another process \(process \d+ on /);
    await child.stop('SIGKILL');
    await (await open()).close();
  });

  it('is taken over when its lock was deleted, without the loss of an acknowledged append', async () => {
    const child = start('storage/children/appender', [dataDir]);
    await child.line((line) => line === 'document 20');
    await rm(join(dataDir, 'lock'), { recursive: true });
    const stores = await open();
    // It fails with the answer to its append, and ends.
    if (child.process.exitCode === null) await once(child.process, 'exit');
    expect(child.errors()).toContain('another process has taken over the data folder');
    const acknowledged = child.lines.filter((line) => line.startsWith('svc-')).map((line) => line.split(' '));
    const stored = new Set<string>();
    for (const stream of new Set(acknowledged.map(([name = '']) => name))) {
      for (const { revision, metadata } of await readAll(stores.eventStore, stream)) {
        stored.add(`${stream} ${revision} ${metadata.command.id}`);
      }
    }
    const missing = acknowledged.filter(([stream, revision, , id]) => !stored.has(`${stream} ${revision} ${id}`));
    await stores.close();
    expect(acknowledged.length).toBeGreaterThan(0);
    expect(missing).toEqual([]);
  });

  it('ends the service that it is taken from, which says why', async () => {
    const service = await prepareService({ dataDir });
    await service.start();
    const { child, output } = service.program();
    const ended = once(child, 'exit');
    const thief = start('storage/children/contender', [dataDir, 'thief', '100']);
    expect(await ended).toEqual([1, null]);
    expect(output()).toMatch(/The data folder \S+ cannot be used any more: another process has taken over/);
    await thief.line((line) => line === 'done');
    expect(thief.lines.filter((line) => line.startsWith('lost '))).toEqual([]);
  });

  it('loses no acknowledged append when two processes fight for it without a lock, and each loser is told', async () => {
    await (await open()).close();
    const lines: string[] = [];
    const until = Date.now() + 80_000;
    const fight = async (name: string): Promise<void> => {
      let missing = 5000;
      while (missing > 0 && Date.now() < until) {
        const fighter = start('storage/children/contender', [dataDir, name, String(missing)]);
        await once(fighter.process, 'close');
        expect(fighter.lines.at(-1) ?? fighter.errors()).toMatch(/^(lost|done)/);
        lines.push(...fighter.lines);
        missing -= fighter.lines.filter((line) => line.startsWith('ack ')).length;
      }
    };
    await Promise.all(['a', 'b'].map(fight));
    expect(lines.filter((line) => line.startsWith('unexpected'))).toEqual([]);
    const losses = lines.filter((line) => line.startsWith('lost '));
    expect(losses.length).toBeGreaterThan(2);
    expect(losses.filter((line) => !line.includes('another process has taken over the data folder'))).toEqual([]);

    const stores = await open();
    const acknowledged = lines.filter((line) => line.startsWith('ack ')).map((line) => line.split(' '));
    const streams = [...new Set(acknowledged.map(([, , stream = '']) => stream))];
    const stored = new Map<string, string>();
    for (const stream of streams) {
      const events = await readAll(stores.eventStore, stream);
      expect(events.map(({ revision }) => revision)).toEqual(events.map((_, index) => index));
      for (const { id, revision, position } of events) stored.set(id, `${stream} ${revision} ${position}`);
    }
    const missing = acknowledged.filter(([, id = '', ...place]) => stored.get(id) !== place.join(' '));
    await stores.close();
    expect(acknowledged.length).toBeGreaterThanOrEqual(10_000);
    expect(missing).toEqual([]);
  });
});

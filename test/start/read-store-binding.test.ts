/** A read store belongs to one installation: another one that would use it is not started, and changes nothing in it. */
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/kernel/clock.js';
import { createClosers } from '../../src/kernel/closers.js';
import { randomIds } from '../../src/kernel/ids.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { openInstallation } from '../../src/app/installation/installation.js';
import { bindReadStore, ofAnotherInstallation, watchReadStore } from '../../src/app/installation/read-store-binding.js';
import { openEmbedded } from '../../src/storage/embedded/open-embedded.js';
import { lastRevision } from '../../src/storage/event-store.js';
import { openEventStoreDb } from '../../src/storage/eventstoredb/open.js';
import { streams } from '../../src/kernel/event.js';
import { startEventStoreDbProcess } from '../servers/eventstoredb-process.js';
import { eventually } from '../support/eventually.js';
import { runMaintenance } from '../support/programs.js';

let folder: string;
let [one, two] = ['', ''];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'binding-'));
  [one, two] = [join(folder, 'one'), join(folder, 'two')];
});
afterEach(() => rm(folder, { recursive: true }));

/** The beginning of a start. @returns the id of the installation @throws StartError */
async function started(dataDir: string, eventStoreUrl?: string): Promise<string> {
  const closers = createClosers(silentLogger);
  const [inline, file] = [undefined, undefined];
  const settings = { dataDir, eventStoreUrl, mongoUrl: undefined, masterKey: { inline, file } };
  const deps = { clock: systemClock, ids: randomIds, logger: silentLogger, closers, onTakenOver: () => undefined };
  try {
    return (await openInstallation(settings, deps)).identity.installationId;
  } finally {
    await closers.closeAll();
  }
}

const stores = (dataDir: string) => openEmbedded({ dataDir, clock: systemClock, logger: silentLogger });

/** Two installations, the second with the read store of the first. @returns their ids */
async function mixed(): Promise<readonly [string, string]> {
  const ids = [await started(one), await started(two)] as const;
  await rm(join(two, 'read'), { recursive: true });
  await cp(join(one, 'read'), join(two, 'read'), { recursive: true });
  return ids;
}

it('refuses a start and the maintenance commands in one sentence with both ids and the remedy', async () => {
  const [bound, own] = await mixed();
  const sentence =
    `the read store belongs to installation ${bound}, beside the log of ${own}. The read store does not belong to ` +
    `this log: empty it (delete ${join(two, 'read')}, or drop the database) and start again.`;
  await expect(started(two)).rejects.toThrow(`The start is refused: ${sentence}`);
  const command = await runMaintenance('admin:reset-password', ['admin'], { SVC_DATA_DIR: two });
  expect(command).toMatchObject({ code: 1, out: '', err: `Nothing is done: ${sentence}\n` });
  await rm(join(two, 'read'), { recursive: true });
  expect(await started(two)).toBe(own);
});

it('refuses to begin a new installation on the read store of another one', async () => {
  const bound = await started(one);
  const server = await startEventStoreDbProcess();
  const deps = { clock: systemClock, logger: silentLogger };
  const eventStore = openEventStoreDb({ url: server.url, ...deps });
  try {
    await expect(started(one, server.url)).rejects.toThrow(
      `the read store belongs to installation ${bound}, beside a log on which no service has started (where`,
    );
    expect(await lastRevision(eventStore, streams.service)).toBeUndefined();
    // With a read store of its own it begins.
    expect(await started(two, server.url)).not.toBe(bound);
  } finally {
    await eventStore.close();
    await server.close();
  }
});

it('accepts its own read store, and binds one that has lost its binding', async () => {
  const id = await started(one);
  expect(await started(one)).toBe(id);
  const before = await stores(one);
  await before.readStore.drop('installations', 1);
  await before.close();
  expect(await started(one)).toBe(id);
  const after = await stores(one);
  await bindReadStore(after.readStore, 'another');
  expect(await ofAnotherInstallation(after.eventStore, after.readStore)).toBeUndefined();
  await after.close();
});

describe('a watched read store', () => {
  it('is told from one that was emptied, also when somebody has filled it again, and keeps its checkpoints apart', async () => {
    await started(one);
    const { readStore, close } = await stores(one);
    let emptied = 0;
    const bound = await bindReadStore(readStore, 'one');
    const checkpoint = { commit: 7, prepare: 7, anchors: [] };
    await bound.saveCheckpoint('p', 1, checkpoint);
    expect(await (await bindReadStore(readStore, 'one')).loadCheckpoint('p', 1)).toMatchObject(checkpoint);
    const watching = await watchReadStore(bound, () => (emptied += 1), 5);
    await readStore.drop('installations', 1);
    const again = await bindReadStore(readStore, 'one');
    expect(again.id).not.toBe(bound.id);
    await bound.saveCheckpoint('p', 1, { ...checkpoint, commit: 9 });
    expect(await again.loadCheckpoint('p', 1)).toBeUndefined();
    await eventually(() => emptied).toBe(1);
    await watching.close();
    await close();
  });
});

/** A read store whose file is damaged never takes the process down: it is set aside, and the log stays. */
import { open, readdir, rm, stat, truncate, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { systemClock } from '../../src/kernel/clock.js';
import { openEmbedded } from '../../src/storage/embedded/open-embedded.js';
import { lastRevision } from '../../src/storage/event-store.js';
import type { Collection } from '../../src/storage/read-store.js';
import { commandOf } from './contract/appending.js';
import { temporaryFolder } from './contract/temporary-folder.js';
import { recordingLogger, type LogLine } from './eventstoredb/fixture.js';

const page = 4096;

/** Writes over a part of a file; lengths and offsets are pages. */
async function overwrite(path: string, from: number, pages: number, byte: number): Promise<void> {
  const file = await open(path, 'r+');
  await file.write(Buffer.alloc(pages * page, byte), 0, pages * page, from * page);
  await file.close();
}

type Damage = (path: string, pages: number) => Promise<void>;
const damages: readonly (readonly [what: string, damage: Damage])[] = [
  ['the first pages are zeros', (path) => overwrite(path, 0, 2, 0)],
  ['the first pages are noise', (path) => overwrite(path, 0, 2, 0xa5)],
  ['the middle is noise', (path, pages) => overwrite(path, 4, pages - 4, 0xa5)],
  ['the middle is zeros', (path, pages) => overwrite(path, 4, pages - 4, 0)],
  ['the file is cut to its first pages', (path) => truncate(path, 3 * page)],
  ['the file is empty', (path) => truncate(path, 0)],
  ['the file is a text', (path) => writeFile(path, 'not a database\n'.repeat(9_999))],
];

async function withFolder(use: (folder: string, read: string) => Promise<void>): Promise<void> {
  const folder = await temporaryFolder();
  try {
    await use(folder.path, join(folder.path, 'read'));
  } finally {
    await folder.remove();
  }
}

/** Opens the folder, works with its stores, and closes it. */
async function using<T>(
  dataDir: string,
  work: (documents: Collection, head: number | undefined) => Promise<T>,
): Promise<{ readonly result: T; readonly lines: readonly LogLine[] }> {
  const lines: LogLine[] = [];
  const stores = await openEmbedded({ dataDir, clock: systemClock, logger: recordingLogger(lines) });
  try {
    const documents = await stores.readStore.collection({ name: 'seen', version: 1 });
    if ((await lastRevision(stores.eventStore, 'svc-fleet')) === undefined)
      await stores.eventStore.append('svc-fleet', 'no_stream', commandOf(2));
    return { result: await work(documents, await lastRevision(stores.eventStore, 'svc-fleet')), lines };
  } finally {
    await stores.close();
  }
}

const fill = (dataDir: string) =>
  using(dataDir, (documents) =>
    documents.set(Array.from({ length: 500 }, (_, n) => ({ id: `id-${n}`, fields: { text: `${n}`.repeat(200) } }))),
  );
const look = (dataDir: string) =>
  using(dataDir, async (documents, head) => ({ first: await documents.get('id-1'), head }));

it.each(damages)('when %s, it is set aside and made anew', async (_, damage) => {
  await withFolder(async (folder, read) => {
    await fill(folder);
    const file = join(read, 'data.mdb');
    await damage(file, Math.floor((await stat(file)).size / page));
    const { result, lines } = await look(folder);
    expect(result).toEqual({ first: undefined, head: 1 });
    expect((await readdir(folder)).filter((name) => name.startsWith('read.damaged-'))).toHaveLength(1);
    expect(lines.filter(({ level }) => level === 'error')).toEqual([
      expect.objectContaining({ message: expect.stringMatching(/^the read store is damaged/) }),
    ]);
  });
});

it('after a close that left no note, a sound one is read through and kept', async () => {
  await withFolder(async (folder, read) => {
    await fill(folder);
    await rm(join(read, 'closed'));
    expect((await look(folder)).result).toMatchObject({ first: { id: 'id-1' }, head: 1 });
    expect((await readdir(folder)).filter((name) => name.startsWith('read.'))).toEqual([]);
  });
});

it('a changed time of the file alone is no damage', async () => {
  await withFolder(async (folder, read) => {
    await fill(folder);
    await utimes(join(read, 'data.mdb'), 1, 1);
    expect((await look(folder)).result).toMatchObject({ first: { id: 'id-1' } });
  });
});

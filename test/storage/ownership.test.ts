/** A process that opens the files of an embedded store announces it; the one before learns of it after its next commit. */
import type * as fileSystem from 'node:fs';
import { readdirSync, rmSync, type PathLike } from 'node:fs';
import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { silentLogger } from '../../src/kernel/logger.js';
import { announce, wasAnnounced, createOwnership } from '../../src/storage/embedded/ownership.js';
import { openEnvironment, type Environment } from '../../src/storage/embedded/environment.js';
import { temporaryFolder } from './contract/temporary-folder.js';

/** Whether listing a folder fails: no real file system fails at the right moment. */
const listing = vi.hoisted(() => ({ fails: false }));
vi.mock('node:fs', async (original) => {
  const fs = await original<typeof fileSystem>();
  const readdirOrNot = (place: PathLike): string[] => {
    if (listing.fails) throw new Error('ENOENT: the folder cannot be listed');
    return fs.readdirSync(place);
  };
  return { ...fs, readdirSync: readdirOrNot };
});

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let path: string;
beforeEach(async () => {
  folder = await temporaryFolder();
  path = join(folder.path, 'log');
  await mkdir(path);
});
afterEach(async () => {
  listing.fails = false;
  await folder.remove();
});

const isAnnouncement = (name: string): boolean => name.startsWith('opened-by-');
const announcements = async (): Promise<readonly string[]> => (await readdir(path)).filter(isAnnouncement);

describe('an announcement', () => {
  it('stands until another one is made, and leaves one file', async () => {
    expect(wasAnnounced(path)).toBe(false);
    const first = announce(path, 1);
    expect([wasAnnounced(path), first.stands()]).toEqual([true, true]);
    const second = announce(path, 2);
    expect([first.stands(), second.stands()]).toEqual([false, true]);
    expect(await announcements()).toEqual(['opened-by-2']);
  });

  it('that was removed by hand is made again', async () => {
    const first = announce(path, 1);
    await rm(join(path, 'opened-by-1'));
    expect(first.stands()).toBe(true);
    expect(await announcements()).toEqual(['opened-by-1']);
  });
});

describe.each([
  { kind: 'of flushed commits', mixed: false },
  { kind: 'of mixed commits', mixed: true },
])('a commit of an environment $kind', ({ mixed }) => {
  const change = (key: string) => [['data', [[key, Buffer.from('value')]]]] as const;
  let environment: Environment<'data'>;
  let told: string[];
  beforeEach(() => {
    told = [];
    const ownership = createOwnership((reason) => told.push(reason));
    environment = openEnvironment({ path, databases: { data: 'bytes' }, mixed, ownership, logger: silentLogger });
  });
  afterEach(() => environment.close());

  it('is durable while nobody else has begun to open the files', async () => {
    expect(await environment.commit(change('a'))).toEqual({ kind: 'durable' });
    expect(environment.get('data', 'a')?.toString()).toBe('value');
    expect(told).toEqual([]);
  });

  it('during which another process begins to open the files is unknown, and nothing is read or written after it', async () => {
    const committing = environment.commit(change('a'));
    announce(path, 2);
    expect(await committing).toMatchObject({ kind: 'unknown', cause: expect.stringContaining('taken over') as string });
    expect(told).toHaveLength(1);
    expect(() => environment.get('data', 'a')).toThrow('taken over');
    expect(await environment.commit(change('b'))).toMatchObject({ kind: 'not_written' });
  });

  it('whose announcement cannot be looked for is unknown, and is no reason to give the files up', async () => {
    const committing = environment.commit(change('a'));
    // At once, so that the commit cannot end before.
    for (const name of readdirSync(path).filter(isAnnouncement)) rmSync(join(path, name));
    listing.fails = true;
    expect(await committing).toMatchObject({ kind: 'unknown', cause: expect.stringContaining('ENOENT') as string });
    expect(told).toEqual([]);
  });
});

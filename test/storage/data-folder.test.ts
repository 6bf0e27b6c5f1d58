/**
 * The data folder is private, belongs to one process, is freed when that dies, and is refused when its format is newer.
 */
import { chmod, mkdir, readdir, readFile, readlink, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../src/kernel/clock.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { DataFolderError, openEmbedded, type EmbeddedStores } from '../../src/storage/embedded/open-embedded.js';
import { startChild } from './children/start-child.js';
import { temporaryFolder } from './contract/temporary-folder.js';

describe('the data folder', () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  let dataDir: string;
  const open = (): Promise<EmbeddedStores> => openEmbedded({ dataDir, clock: systemClock, logger: silentLogger });
  beforeEach(async () => {
    folder = await temporaryFolder();
    dataDir = join(folder.path, 'deep', 'data');
  });
  afterEach(() => folder.remove());

  it('is readable for its owner only, with all that is in it, created or found', async () => {
    const modes = async (): Promise<readonly string[]> => {
      const names = (await readdir(dataDir, { recursive: true })).sort();
      const all = [dataDir, ...names.map((name) => join(dataDir, name))];
      return Promise.all(all.map(async (path) => ((await stat(path)).mode & 0o777).toString(8)));
    };
    const isPrivate = expect.arrayContaining(['700', '600']) as unknown;
    await (await open()).close();
    expect(await modes()).toEqual(isPrivate);
    expect((await modes()).filter((mode) => mode !== '700' && mode !== '600')).toEqual([]);
    await Promise.all([dataDir, join(dataDir, 'log'), join(dataDir, 'read')].map((path) => chmod(path, 0o755)));
    await Promise.all(['log', 'read'].map((name) => chmod(join(dataDir, name, 'data.mdb'), 0o644)));
    await (await open()).close();
    expect((await modes()).filter((mode) => mode !== '700' && mode !== '600')).toEqual([]);
  });

  it('is refused in one sentence while it is open, and free after it is closed', async () => {
    const first = await open();
    await expect(open()).rejects.toThrow(DataFolderError);
    await expect(open()).rejects.toThrow(
      /^The data folder \S+ is in use by another process \(.+\): stop it or use another folder\.$/,
    );
    await first.close();
    await (await open()).close();
  });

  it('is refused while another process uses it, and free as soon as that process is killed', async () => {
    const child = startChild('storage/children/appender', [dataDir]);
    await child.line((line) => line === 'open');
    await expect(open()).rejects.toThrow(/in use by another process/);
    await child.stop('SIGKILL');
    await (await open()).close();
  });

  it('is closed again when it cannot be used after it was opened', async () => {
    const broken = {
      ...systemClock,
      monotonic: () => {
        throw new Error('the clock is broken');
      },
    };
    const files = async (): Promise<readonly string[]> => {
      const descriptors = await readdir('/proc/self/fd');
      const paths = await Promise.all(descriptors.map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')));
      return paths.filter((path) => path.startsWith(dataDir));
    };
    await expect(openEmbedded({ dataDir, clock: broken, logger: silentLogger })).rejects.toThrow(/the clock is broken/);
    await vi.waitFor(async () => expect(await files()).toEqual([]));
    await (await open()).close();
  });

  it('is refused in one sentence when a newer release wrote it', async () => {
    await (await open()).close();
    const marker = join(dataDir, 'format.json');
    const { format } = JSON.parse(await readFile(marker, 'utf8')) as { format: number };
    await writeFile(marker, JSON.stringify({ format: format + 1 }));
    await expect(open()).rejects.toThrow(/^The data folder \S+ has format 2, written by a newer release; .* 1\.$/);
    await writeFile(marker, 'not json');
    await expect(open()).rejects.toThrow(DataFolderError);
    await writeFile(marker, JSON.stringify({ format }));
    await (await open()).close();
  });

  it('is refused in one sentence when it is a file', async () => {
    await mkdir(join(folder.path, 'deep'));
    await writeFile(dataDir, 'x');
    await expect(open()).rejects.toThrow(DataFolderError);
  });
});

/**
 * Opens the embedded stores of a data folder: creates or checks the folder, locks it, and opens both environments in
 * it. Code outside `storage/embedded` imports only this file. Implements `docs/architecture.md#storage`.
 */
import { join, resolve } from 'node:path';
import type { Clock } from '../../kernel/clock.js';
import { errorText } from '../../kernel/errors.js';
import { makePrivate, syncFolder } from '../../kernel/files.js';
import type { Logger } from '../../kernel/logger.js';
import { dataFormat } from '../../kernel/release.js';
import type { ReadStore } from '../read-store.js';
import { isDiskFull } from '../store-access.js';
import { noteClosed, setAsideIfDamaged } from './damaged-read-store.js';
import { lockFolderName, lockFolder } from './folder-lock.js';
import { openEventStore, type EmbeddedEventStore } from './log/event-store.js';
import { createOwnership } from './ownership.js';
import { openReadStore } from './read/read-store.js';
import { existsSync } from 'node:fs';
import { mkdir, open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';

export interface EmbeddedOptions {
  readonly dataDir: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called once, when another process has taken over the folder: from then on nothing can be written. */
  readonly onTakenOver?: ((sentence: string) => void) | undefined;
}

export interface EmbeddedStores {
  readonly eventStore: EmbeddedEventStore;
  readonly readStore: ReadStore;
  /** Writes what is queued, closes both stores and unlocks the folder. */
  close(): Promise<void>;
}

/** @throws DataFolderError when the folder is in use, unreadable or of a newer format */
export async function openEmbedded(options: EmbeddedOptions): Promise<EmbeddedStores> {
  const { path, log: logPath, read: readPath, unlock } = await openDataFolder(options.dataDir);
  const { clock, logger } = options;
  const ownership = createOwnership((reason) => {
    logger.error({ path }, reason);
    options.onTakenOver?.(`The data folder ${path} cannot be used any more: ${reason}.`);
  });
  let eventStore: EmbeddedEventStore | undefined;
  let readStore: ReadStore | undefined;
  try {
    eventStore = openEventStore(logPath, ownership, clock, logger);
    await setAsideIfDamaged(readPath, logger);
    readStore = await openReadStore(readPath, ownership, clock, logger);
    const [log, documents] = [eventStore, readStore];
    const folders = [logPath, readPath, join(path, lockFolderName)];
    await makePrivate(0o700, [path, ...folders]);
    const files = folders.flatMap((folder) => ['data.mdb', 'lock.mdb'].map((name) => join(folder, name)));
    await makePrivate(0o600, files);
    let closing: Promise<void> | undefined;
    return {
      eventStore: log,
      readStore: documents,
      close() {
        closing ??= (async () => {
          await Promise.allSettled([log.close(), documents.close().then(() => noteClosed(readPath))]);
          await unlock();
        })();
        return closing;
      },
    };
  } catch (error) {
    await Promise.allSettled([eventStore?.close(), readStore?.close()]);
    await unlock();
    throw await unusable(path, error, `The stores in ${path} cannot be opened`);
  }
}

/** @param otherwise what is wrong if the disk is not full, without the cause */
async function unusable(path: string, error: unknown, otherwise: string): Promise<DataFolderError> {
  // LMDB calls a full disk an input/output error.
  const isFull = isDiskFull(error) || isDiskFull(await checkRoom(path).catch((cause: unknown) => cause));
  return new DataFolderError(isFull ? fullDisk(path) : `${otherwise}: ${errorText(error)}.`, { cause: error });
}

/** About what new environments need. */
const roomBytes = 256 * 1024;

/** @throws the file system's error when the disk has no room */
async function checkRoom(path: string): Promise<void> {
  const file = join(path, 'room.tmp');
  try {
    await writeFile(file, Buffer.alloc(roomBytes), { mode: 0o600 });
  } finally {
    await rm(file, { force: true });
  }
}

/** The message about a data folder on a full disk. */
export const fullDisk = (dataDir: string): string =>
  `The disk of the data folder ${dataDir} is full: make room and start again.`;

const markerName = 'format.json';

/** The folder cannot be used; the message is a sentence for the operator. */
export class DataFolderError extends Error {
  override readonly name = 'DataFolderError';
}

async function writeMarker(folder: string): Promise<void> {
  const temporary = join(folder, `${markerName}.new`);
  const file = await open(temporary, 'w', 0o600);
  try {
    await file.writeFile(`${JSON.stringify({ format: dataFormat })}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, join(folder, markerName));
  await syncFolder(folder);
}

/** @throws DataFolderError for a folder of a newer format; the file system's error */
export async function checkMarker(folder: string): Promise<void> {
  const text = await readFile(join(folder, markerName), 'utf8');
  let format: unknown;
  try {
    const marker: unknown = JSON.parse(text);
    format = typeof marker === 'object' && marker !== null && 'format' in marker ? marker.format : undefined;
  } catch {
    format = undefined;
  }
  if (typeof format !== 'number') {
    throw new DataFolderError(
      `The data folder ${folder} has an unreadable ${markerName}: restore that file or use another folder.`,
    );
  }
  if (format > dataFormat) {
    throw new DataFolderError(
      `The data folder ${folder} has format ${format}, written by a newer release; this release reads up to format ${dataFormat}.`,
    );
  }
}

/**
 * Creates (mode 0700), locks and checks the folder.
 * @returns its path, those of the two stores in it, and how to unlock it
 * @throws DataFolderError when it cannot be created, another process uses it, or its format is newer
 */
async function openDataFolder(dataDir: string) {
  const path = resolve(dataDir);
  const [log, read] = [join(path, 'log'), join(path, 'read')];
  const locking = async (): ReturnType<typeof lockFolder> => {
    await mkdir(path, { recursive: true, mode: 0o700 });
    if (!(await stat(path)).isDirectory()) throw new Error('it is not a folder');
    // LMDB crashes when it cannot write the first pages of a file.
    if (!existsSync(join(path, markerName))) await checkRoom(path);
    return lockFolder(path);
  };
  const cannot = (error: unknown) => unusable(path, error, `The data folder ${path} cannot be used`);
  const lock = await locking().catch(async (error: unknown) => {
    throw await cannot(error);
  });
  if (lock.kind === 'held') {
    throw new DataFolderError(
      `The data folder ${path} is in use by another process (${lock.by}): stop it or use another folder.`,
    );
  }
  try {
    if (!existsSync(join(path, markerName))) await writeMarker(path);
    await checkMarker(path);
  } catch (error) {
    await lock.release();
    throw error instanceof DataFolderError ? error : await cannot(error);
  }
  return { path, log, read, unlock: lock.release };
}

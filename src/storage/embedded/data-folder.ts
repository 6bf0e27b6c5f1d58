/**
 * The data folder: created private, marked with the version of its format, and locked against a second process. The
 * stores in it are opened by `open-embedded.ts`. Implements `docs/contract/configuration.md#configuration` (SVC_DATA_DIR).
 */
import { mkdir, open, readFile, rename, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { errorText } from '../../kernel/errors.js';
import { syncFolder, systemErrorCode } from '../../kernel/files.js';
import { lockFolder } from './folder-lock.js';

/** Raise it when the content of the folder changes in a way that earlier releases cannot read. */
const dataFormat = 1;
const markerName = 'format.json';

/** The folder cannot be used; the message is one sentence for the operator. */
export class DataFolderError extends Error {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super(message, options);
    this.name = 'DataFolderError';
  }
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

async function checkMarker(folder: string): Promise<void> {
  let text: string;
  try {
    text = await readFile(join(folder, markerName), 'utf8');
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return writeMarker(folder);
    throw error;
  }
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

export interface DataFolder {
  readonly path: string;
  /** Folders of the two stores. */
  readonly log: string;
  readonly read: string;
  unlock(): Promise<void>;
}

/**
 * Creates (mode 0700), locks and checks the folder.
 * @throws DataFolderError when it cannot be created, another process uses it, or its format is newer
 */
export async function openDataFolder(dataDir: string): Promise<DataFolder> {
  const path = resolve(dataDir);
  const [log, read] = [join(path, 'log'), join(path, 'read')];
  const cannot = (error: unknown): DataFolderError =>
    new DataFolderError(`The data folder ${path} cannot be used: ${errorText(error)}.`, { cause: error });
  const locking = async (): ReturnType<typeof lockFolder> => {
    await mkdir(path, { recursive: true, mode: 0o700 });
    if (!(await stat(path)).isDirectory()) throw new Error('it is not a folder');
    return lockFolder(path);
  };
  const lock = await locking().catch((error: unknown) => {
    throw cannot(error);
  });
  if (lock.kind === 'held') {
    throw new DataFolderError(
      `The data folder ${path} is in use by another process (${lock.by}): stop it or use another folder.`,
    );
  }
  try {
    await checkMarker(path);
  } catch (error) {
    await lock.release();
    throw error instanceof DataFolderError ? error : cannot(error);
  }
  return { path, log, read, unlock: lock.release };
}

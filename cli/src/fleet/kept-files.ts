/**
 * Files for secrets that are shown once: created before the secret is requested, so that no long name, read-only folder or
 * existing file loses one. Implements `docs/contract/automation.md#the-command-line-svcctl`, `--psk-dir`.
 */
import { createHash, randomUUID } from 'node:crypto';
import {
  closeSync,
  fsyncSync,
  ftruncateSync,
  lstatSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { usage } from '../exit.js';

/** The limit of common file systems, minus the suffix of the temporary name. */
const nameBytes = 255 - 40;

/** A file name for a resource: readable, stable, and never too long. */
export function fileNameOf(name: string, ending: string): string {
  // A leading underscore is reserved for names of svcctl.
  const encoded = encodeURIComponent(name).replace(/^_/, '%5F');
  if (Buffer.byteLength(encoded + ending) <= nameBytes) return encoded + ending;
  const hash = createHash('sha256').update(name).digest('hex').slice(0, 16);
  const short = encoded.slice(0, nameBytes - ending.length - hash.length - 1).replace(/%[0-9A-F]?$/, '');
  return `${short}-${hash}${ending}`;
}

export interface PreparedFile {
  readonly path: string;
  /** Writes the content. @throws Error when it cannot be kept */
  keep(text: string): void;
  /** Removes a file that is not needed. */
  drop(): void;
}

/** Reserves the space of an environment file. */
const reserved = Buffer.alloc(4096, '\n');

/** @param ending `.env` @throws Failure usage when the file could not be kept */
export function prepareFile(folder: string, name: string, ending: string): PreparedFile {
  const path = join(folder, fileNameOf(name, ending));
  const fresh = join(folder, `.${randomUUID()}.svcctl`);
  let file: number | undefined;
  const close = (): void => {
    if (file !== undefined) closeSync(file);
    file = undefined;
  };
  const drop = (): void => {
    close();
    rmSync(fresh, { force: true });
  };
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true) throw new Error('it is a folder');
    file = openSync(fresh, 'wx', 0o600);
    writeSync(file, reserved);
    fsyncSync(file);
  } catch (error) {
    try {
      drop();
    } catch {
      // It may not have been created.
    }
    throw usage(`--psk-dir: ${path}: ${(error as Error).message}`);
  }
  return {
    path,
    drop,
    keep(text) {
      if (file === undefined) throw new Error('the file is closed');
      try {
        writeSync(file, text, 0);
        ftruncateSync(file, Buffer.byteLength(text));
        fsyncSync(file);
        close();
        renameSync(fresh, path);
      } catch (error) {
        drop();
        throw error;
      }
    },
  };
}
